// Calls of the API by pages: same origin, with the session cookie. Every failure is an ApiProblem.
import createClient from 'openapi-fetch';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];
export type Me = Schemas['Me'];

export interface FieldError {
  pointer: string;
  detail: string;
}

/** A problem of the API (RFC 9457), or no connection (status 0). */
export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    readonly detail: string,
    readonly requestId: string | undefined,
    readonly errors: FieldError[],
    readonly retryAfter: number | undefined,
  ) {
    super(detail);
  }
}

type App = 'console' | 'portal';
const session = { app: 'console' as App, csrf: '', bearer: '' };

/** Which app this is, and how it proves itself. A bearer token is only used where cookies cannot be: in a frame. */
export function configureApi(settings: Partial<typeof session>): void {
  Object.assign(session, settings);
}

const lostListeners = new Set<() => void>();
/** Called when the session is over. */
export function onSessionLost(listener: () => void): () => void {
  lostListeners.add(listener);
  return () => lostListeners.delete(listener);
}

function offline(): ApiProblem {
  return new ApiProblem(0, 'offline', 'The server cannot be reached.', undefined, [], undefined);
}

async function problemOf(response: Response): Promise<ApiProblem> {
  let body: Partial<Schemas['Problem']> = {};
  try {
    body = await response.json();
  } catch {
    // Not from postrider: a proxy before it.
  }
  const retryAfter = Number(response.headers.get('retry-after')) || undefined;
  const type = (body.type ?? '').replace('urn:postrider:problem:', '');
  const detail = body.detail ?? `The server responded ${response.status}.`;
  const requestId = body.request_id ?? response.headers.get('x-request-id') ?? undefined;
  return new ApiProblem(response.status, type, detail, requestId, body.errors ?? [], retryAfter);
}

/** fetch() with what every call needs; rejects with an ApiProblem. */
export async function send(request: Request): Promise<Response> {
  request.headers.set('x-postrider-app', session.app);
  if (session.bearer) request.headers.set('authorization', `Bearer ${session.bearer}`);
  else if (request.method !== 'GET' && session.csrf) request.headers.set('x-postrider-csrf', session.csrf);
  let response: Response;
  try {
    response = await fetch(request);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw offline();
  }
  if (response.ok || response.status === 304) return response;
  const problem = await problemOf(response);
  if (response.status === 401 && !new URL(request.url).pathname.endsWith('/session')) lostListeners.forEach((listener) => listener());
  throw problem;
}

export const client = createClient<paths>({
  baseUrl: globalThis.location?.origin ?? 'http://localhost',
  credentials: 'same-origin',
  cache: 'no-store',
  fetch: send,
});

interface Answer<T> {
  data?: T;
  response: Response;
}

/** The body of an answer: failures were thrown already. */
export async function body<T>(answer: Promise<Answer<T>>): Promise<T> {
  const { data } = await answer;
  return data as T;
}

/** The body and its ETag, for If-Match. */
export async function tagged<T>(answer: Promise<Answer<T>>): Promise<{ value: T; etag: string }> {
  const { data, response } = await answer;
  return { value: data as T, etag: response.headers.get('etag') ?? '' };
}

export async function getText(path: string, signal?: AbortSignal): Promise<{ text: string; etag: string }> {
  const response = await send(new Request(new URL(path, location.origin), { signal, cache: 'no-store' }));
  return { text: await response.text(), etag: response.headers.get('etag') ?? '' };
}

/** A JSON body as text: what was typed arrives exactly. */
export async function sendText(method: 'PUT' | 'POST', path: string, text: string, headers: Record<string, string> = {}): Promise<Response> {
  return send(new Request(new URL(path, location.origin), { method, headers: { ...headers, 'content-type': 'application/json' }, body: text }));
}

export async function postJson(path: string, value: unknown): Promise<unknown> {
  const response = await send(
    new Request(new URL(path, location.origin), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(value),
    }),
  );
  return response.status === 204 ? undefined : response.json();
}

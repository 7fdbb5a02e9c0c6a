import { body, client, type Schemas } from './client';
import { fillPage, type Page } from './pages';

export type DeadLetter = Schemas['DeadLetter'];
export type DeadLetterSummary = Schemas['DeadLetterSummary'];
export type DeadLetterGroup = DeadLetterSummary['data'][number];
export type Cause = Schemas['Cause'];

export interface DeadLetterFilter {
  tenant?: string;
  endpoint?: string;
  cause?: Cause;
  resolved?: 'true' | 'false';
  since?: string;
  until?: string;
}

export function deadLetterSummary(tenant: string | undefined, signal?: AbortSignal): Promise<DeadLetterSummary> {
  return tenant
    ? body(client.GET('/v1/tenants/{tenant}/dead-letters/summary', { params: { path: { tenant } }, signal }))
    : body(client.GET('/v1/dead-letters/summary', { signal }));
}

export function listDeadLetters(filter: DeadLetterFilter, cursor: string | undefined, signal?: AbortSignal): Promise<Page<DeadLetter>> {
  const { tenant, resolved, ...rest } = filter;
  return fillPage(50, cursor, (next) => {
    const query = { ...rest, ...(resolved ? { resolved: resolved === 'true' } : {}), cursor: next, limit: 50 };
    return tenant
      ? body(client.GET('/v1/tenants/{tenant}/dead-letters', { params: { path: { tenant }, query }, signal }))
      : body(client.GET('/v1/dead-letters', { params: { query }, signal }));
  });
}

/** What a bulk action is for: IDs, or a filter. The same object that the page shows. */
export interface DeadLetterChoice {
  ids?: string[];
  endpoint?: string;
  cause?: Cause;
  since?: string;
  until?: string;
  all?: boolean;
}

/** The replays that were started: one for each tenant. */
export async function replayDeadLetters(tenant: string | undefined, choice: DeadLetterChoice, reason: string): Promise<{ id: string }[]> {
  const wanted = { ...choice, reason };
  if (tenant) return [await body(client.POST('/v1/tenants/{tenant}/dead-letters/replay', { params: { path: { tenant } }, body: wanted }))];
  return (await body(client.POST('/v1/dead-letters/replay', { body: wanted }))).data;
}

export function discardDeadLetters(tenant: string | undefined, choice: DeadLetterChoice, reason: string) {
  const wanted = { ...choice, reason };
  return tenant
    ? body(client.POST('/v1/tenants/{tenant}/dead-letters/discard', { params: { path: { tenant } }, body: wanted }))
    : body(client.POST('/v1/dead-letters/discard', { body: wanted }));
}

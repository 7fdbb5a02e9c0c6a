import { body, client, tagged, type Schemas } from './client';
import { fillPage, type Page } from './pages';

export type Endpoint = Schemas['Endpoint'];
export type EndpointChange = Schemas['EndpointChange'];
export type NewEndpoint = Schemas['NewEndpoint'];
export type TestExchange = Schemas['TestExchange'];
export type Subscription = Schemas['Subscription'];
export type Secret = Schemas['Secret'];

const one = '/v1/tenants/{tenant}/endpoints/{endpoint}' as const;

export interface EndpointFilter {
  status?: 'active' | 'paused' | 'disabled';
  event_type?: string;
  url?: string;
}

export function listEndpoints(tenant: string, filter: EndpointFilter, cursor: string | undefined, signal?: AbortSignal): Promise<Page<Endpoint>> {
  return fillPage(50, cursor, (next) =>
    body(client.GET('/v1/tenants/{tenant}/endpoints', { params: { path: { tenant }, query: { ...filter, cursor: next, limit: 50 } }, signal })),
  );
}

export function getEndpoint(tenant: string, endpoint: string, signal?: AbortSignal): Promise<{ value: Endpoint; etag: string }> {
  return tagged(client.GET(one, { params: { path: { tenant, endpoint } }, signal }));
}

export function createEndpoint(tenant: string, wanted: NewEndpoint) {
  return body(client.POST('/v1/tenants/{tenant}/endpoints', { params: { path: { tenant } }, body: wanted }));
}

/** Rejected with 412 if somebody changed the endpoint since `etag` was read. */
export function updateEndpoint(tenant: string, endpoint: string, etag: string, change: EndpointChange): Promise<Endpoint> {
  return body(client.PATCH(one, { params: { path: { tenant, endpoint }, header: { 'If-Match': etag } }, body: change }));
}

export function deleteEndpoint(tenant: string, endpoint: string) {
  return body(client.DELETE(one, { params: { path: { tenant, endpoint } } }));
}

export function pauseEndpoint(tenant: string, endpoint: string, reason?: string): Promise<Endpoint> {
  return body(client.POST(`${one}/pause`, { params: { path: { tenant, endpoint } }, body: reason ? { reason } : {} }));
}

export function resumeEndpoint(tenant: string, endpoint: string): Promise<Endpoint> {
  return body(client.POST(`${one}/resume`, { params: { path: { tenant, endpoint } } }));
}

export function disableEndpoint(tenant: string, endpoint: string, reason: string): Promise<Endpoint> {
  return body(client.POST(`${one}/disable`, { params: { path: { tenant, endpoint } }, body: reason ? { reason } : {} }));
}

export function cancelPending(tenant: string, endpoint: string) {
  return body(client.POST(`${one}/cancel-pending`, { params: { path: { tenant, endpoint } } }));
}

export function testEndpoint(tenant: string, endpoint: string, sample: Schemas['Sample'] = {}): Promise<TestExchange> {
  return body(client.POST(`${one}/test`, { params: { path: { tenant, endpoint } }, body: sample }));
}

export async function listSubscriptions(tenant: string, endpoint: string, signal?: AbortSignal): Promise<Subscription[]> {
  return (await body(client.GET(`${one}/subscriptions`, { params: { path: { tenant, endpoint } }, signal }))).data;
}

export function putSubscriptions(tenant: string, endpoint: string, data: { pattern: string; enabled: boolean; versions: string[] | null }[]) {
  return body(client.PUT(`${one}/subscriptions`, { params: { path: { tenant, endpoint } }, body: { data } }));
}

export async function listSecrets(tenant: string, endpoint: string, signal?: AbortSignal): Promise<Secret[]> {
  return (await body(client.GET(`${one}/secrets`, { params: { path: { tenant, endpoint } }, signal }))).data;
}

export function rotateSecret(tenant: string, endpoint: string, overlapSeconds: number) {
  return body(client.POST(`${one}/secrets/rotate`, { params: { path: { tenant, endpoint } }, body: { overlap_seconds: overlapSeconds } }));
}

export function endSecret(tenant: string, endpoint: string, secret: string) {
  return body(client.DELETE(`${one}/secrets/{secret}`, { params: { path: { tenant, endpoint, secret } } }));
}

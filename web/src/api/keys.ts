import { body, client, type Schemas } from './client';
import { fillPage, type Page } from './pages';

export type Key = Schemas['Key'];
export type NewKey = Schemas['NewKey'];

export function listKeys(tenant: string | undefined, cursor: string | undefined, signal?: AbortSignal): Promise<Page<Key>> {
  return fillPage(50, cursor, (next) => body(client.GET('/v1/keys', { params: { query: { tenant, cursor: next, limit: 50 } }, signal })));
}

export function createKey(wanted: NewKey) {
  return body(client.POST('/v1/keys', { body: wanted }));
}

export function revokeKey(key: string) {
  return body(client.DELETE('/v1/keys/{key}', { params: { path: { key } } }));
}

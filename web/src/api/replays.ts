import { body, client, type Schemas } from './client';
import { fillPage, type Page } from './pages';

export type Replay = Schemas['Replay'];
export type NewReplay = Schemas['NewReplay'];
export type ReplayCount = Schemas['ReplayCount'];

export function listReplays(tenant: string, cursor: string | undefined, signal?: AbortSignal): Promise<Page<Replay>> {
  return fillPage(50, cursor, (next) =>
    body(client.GET('/v1/tenants/{tenant}/replays', { params: { path: { tenant }, query: { cursor: next, limit: 50 } }, signal })),
  );
}

export function getReplay(tenant: string, replay: string, signal?: AbortSignal): Promise<Replay> {
  return body(client.GET('/v1/tenants/{tenant}/replays/{replay}', { params: { path: { tenant, replay } }, signal }));
}

export async function countReplay(tenant: string, wanted: NewReplay): Promise<ReplayCount> {
  const counted = await body(client.POST('/v1/tenants/{tenant}/replays', { params: { path: { tenant } }, body: { ...wanted, dry_run: true } }));
  return counted as ReplayCount;
}

export async function createReplay(tenant: string, wanted: NewReplay): Promise<Replay> {
  const made = await body(client.POST('/v1/tenants/{tenant}/replays', { params: { path: { tenant } }, body: { ...wanted, dry_run: false } }));
  return made as Replay;
}

export function cancelReplay(tenant: string, replay: string): Promise<unknown> {
  return body(client.POST('/v1/tenants/{tenant}/replays/{replay}/cancel', { params: { path: { tenant, replay } } }));
}

import { body, client, type Schemas } from './client';
import { fillPage, type Page } from './pages';

export type Node = Schemas['Node'];
export type Brakes = Schemas['Brakes'];
export type AuditRecord = Schemas['AuditRecord'];

export function listNodes(signal?: AbortSignal) {
  return body(client.GET('/v1/nodes', { signal }));
}

export function getBrakes(signal?: AbortSignal): Promise<Brakes> {
  return body(client.GET('/v1/brakes', { signal }));
}

export interface AuditFilter {
  tenant?: string;
  actor?: string;
  action?: string;
  object?: string;
  since?: string;
  until?: string;
}

export function listAudit(filter: AuditFilter, cursor: string | undefined, signal?: AbortSignal): Promise<Page<AuditRecord>> {
  return fillPage(50, cursor, (next) => body(client.GET('/v1/audit', { params: { query: { ...filter, cursor: next, limit: 50 } }, signal })));
}

export function updateBrakes(change: Schemas['BrakeChange']): Promise<Brakes> {
  return body(client.PATCH('/v1/brakes', { body: change }));
}

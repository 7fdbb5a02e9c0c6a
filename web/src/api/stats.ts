import { body, client, type Schemas } from './client';

export type Stats = Schemas['Stats'];

export interface StatsQuestion {
  by: 'hour' | 'tenant' | 'type' | 'endpoint';
  since?: string;
  until?: string;
  tenant?: string;
  endpoint?: string;
  type?: string;
}

export async function getStats({ tenant, ...query }: StatsQuestion, signal?: AbortSignal): Promise<Stats[]> {
  const limit = 250;
  if (!tenant) return (await body(client.GET('/v1/stats', { params: { query: { ...query, limit } }, signal }))).data;
  if (query.by === 'tenant') return [];
  const by = query.by;
  return (await body(client.GET('/v1/tenants/{tenant}/stats', { params: { path: { tenant }, query: { ...query, by, limit } }, signal }))).data;
}

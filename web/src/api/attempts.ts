import { body, client, type Schemas } from './client';
import { fillPage, type Page } from './pages';

export type Attempt = Schemas['AttemptOfDelivery'];

export interface AttemptFilter {
  tenant?: string;
  outcome?: 'delivered' | 'retrying' | 'dead_letter' | 'canceled';
  status_code?: number;
  error?: string;
  endpoint?: string;
  type?: string;
  since?: string;
  until?: string;
}

export function listAttempts(filter: AttemptFilter, cursor: string | undefined, signal?: AbortSignal): Promise<Page<Attempt>> {
  const { tenant, ...rest } = filter;
  return fillPage(50, cursor, (next) => {
    const query = { ...rest, cursor: next, limit: 50 };
    return tenant
      ? body(client.GET('/v1/tenants/{tenant}/attempts', { params: { path: { tenant }, query }, signal }))
      : body(client.GET('/v1/attempts', { params: { query }, signal }));
  });
}

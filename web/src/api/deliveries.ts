import { body, client, type Schemas } from './client';
import { fillPage, type Page } from './pages';

export type Delivery = Schemas['Delivery'];
export type DeliveryDetail = Schemas['DeliveryDetail'];
export type DeliveryStatus = Schemas['DeliveryStatus'];

export interface DeliveryFilter {
  tenant?: string;
  status?: DeliveryStatus;
  endpoint?: string;
  event?: string;
  type?: string;
  subject?: string;
  since?: string;
  until?: string;
}

export const pageSize = 50;

export function listDeliveries(filter: DeliveryFilter, cursor: string | undefined, signal: AbortSignal): Promise<Page<Delivery>> {
  const { tenant, ...rest } = filter;
  return fillPage(pageSize, cursor, (next) => {
    const query = { ...rest, cursor: next, limit: pageSize };
    return tenant
      ? body(client.GET('/v1/tenants/{tenant}/deliveries', { params: { path: { tenant }, query }, signal }))
      : body(client.GET('/v1/deliveries', { params: { query }, signal }));
  });
}

/** The same list as the API's path, for exports and footers. */
export function deliveriesPath(filter: DeliveryFilter): string {
  const { tenant, ...rest } = filter;
  const query = new URLSearchParams(Object.entries(rest).filter(([, value]) => value) as [string, string][]).toString();
  const base = tenant ? `/v1/tenants/${encodeURIComponent(tenant)}/deliveries` : '/v1/deliveries';
  return query ? `${base}?${query}` : base;
}

export function getDelivery(tenant: string, delivery: string, signal?: AbortSignal): Promise<DeliveryDetail> {
  return body(client.GET('/v1/tenants/{tenant}/deliveries/{delivery}', { params: { path: { tenant, delivery } }, signal }));
}

export function retryDelivery(tenant: string, delivery: string) {
  return body(client.POST('/v1/tenants/{tenant}/deliveries/{delivery}/retry', { params: { path: { tenant, delivery } } }));
}

export function cancelDelivery(tenant: string, delivery: string, reason: string) {
  return body(
    client.POST('/v1/tenants/{tenant}/deliveries/{delivery}/cancel', {
      params: { path: { tenant, delivery } },
      body: { reason },
    }),
  );
}

export function replayDelivery(tenant: string, delivery: string, reason: string) {
  return body(
    client.POST('/v1/tenants/{tenant}/deliveries/{delivery}/replay', {
      params: { path: { tenant, delivery } },
      body: { reason },
    }),
  );
}

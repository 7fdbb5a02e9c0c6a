import { body, client, tagged, type Schemas } from './client';
import { fillPage, type Page } from './pages';

export type Tenant = Schemas['Tenant'];
export type TenantChange = Schemas['TenantChange'];

export function listTenants(cursor: string | undefined, signal?: AbortSignal): Promise<Page<Tenant>> {
  return fillPage(50, cursor, (next) => body(client.GET('/v1/tenants', { params: { query: { cursor: next, limit: 50 } }, signal })));
}

export function getTenant(tenant: string, signal?: AbortSignal): Promise<{ value: Tenant; etag: string }> {
  return tagged(client.GET('/v1/tenants/{tenant}', { params: { path: { tenant } }, signal }));
}

export function createTenant(id: string, name: string): Promise<Tenant> {
  return body(client.POST('/v1/tenants', { body: { id, ...(name ? { name } : {}) } }));
}

export function updateTenant(tenant: string, etag: string, change: TenantChange): Promise<Tenant> {
  return body(client.PATCH('/v1/tenants/{tenant}', { params: { path: { tenant }, header: { 'If-Match': etag } }, body: change }));
}

export function pauseTenant(tenant: string, reason: string): Promise<Tenant> {
  return body(client.POST('/v1/tenants/{tenant}/pause', { params: { path: { tenant } }, body: reason ? { reason } : {} }));
}

export function resumeTenant(tenant: string): Promise<Tenant> {
  return body(client.POST('/v1/tenants/{tenant}/resume', { params: { path: { tenant } } }));
}

export function deleteTenant(tenant: string) {
  return body(client.DELETE('/v1/tenants/{tenant}', { params: { path: { tenant } } }));
}

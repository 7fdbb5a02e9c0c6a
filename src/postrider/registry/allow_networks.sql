-- Networks that operators opened for the URLs of a tenant.

-- name: find_allow_networks
-- Of the tenant, and of the endpoint if the tenant has it. Primary key, endpoint_by_tenant. Locks nothing.
-- not null: all
select
  tenant.allow_networks::text[] as of_tenant,
  coalesce(endpoint.allow_networks, '{}')::text[] as of_endpoint
from tenant
left join endpoint
  on endpoint.tenant_id = tenant.id
  and endpoint.public_id = :endpoint::text
  and endpoint.status <> 'deleted'
where tenant.id = :tenant::text

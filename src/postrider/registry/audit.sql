-- Who did what.

-- name: write_audit
select write_audit(
  :actor_kind::text, :actor::text, :action::text, :tenant?::text, :object::text, :before?::jsonb, :after?::jsonb,
  :reason?::text, :address?::text, :request_id?::text,
  :on_behalf_of::text, :actor_name?::text
)

-- name: list_audit
-- :since is inclusive, :until exclusive; :before_at and :before_id are those of the last row of the previous page;
-- :is_customer: whether the actor must be a customer's. Newest first. Run with custom plans: the index of whichever
-- filter is given, audit_by_time if none; api_key_pkey for the owner's name of each key.
-- not null: all but actor_name, tenant_id, before, after, reason, address, request_id
select
  id,
  at,
  actor_kind,
  actor,
  coalesce(actor_name, (
    select owner
    from api_key
    where api_key.id = case
        when actor_kind in ('key', 'console', 'portal') and actor ~ '^key_[0-9a-f]{32}$' then substr(actor, 5)::uuid
      end
  )) as actor_name,
  on_behalf_of,
  action,
  tenant_id,
  object,
  before::text,
  after::text,
  reason,
  address,
  request_id
from audit
where (:tenant?::text is null or tenant_id = :tenant)
  and (:actor?::text is null or (actor = :actor and (not :is_customer::boolean or on_behalf_of = 'customer')))
  and (:action?::text is null or action = :action)
  and (:object?::text is null or object = :object)
  and (:since?::timestamptz is null or at >= :since)
  and (:until?::timestamptz is null or at < :until)
  and (at, id) < (:before_at::timestamptz, :before_id::bigint)
order by at desc, id desc
limit :limit::integer

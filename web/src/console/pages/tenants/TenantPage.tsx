import { useLocation, useRoute } from 'preact-iso';
import { useState } from 'preact/hooks';
import { refresh, useQuery } from '../../../api/query';
import { deleteTenant, getTenant, pauseTenant, resumeTenant, type Tenant } from '../../../api/tenants';
import { ApiFooter } from '../../../features/ApiFooter';
import { Confirm } from '../../../features/Confirm';
import { can } from '../../../features/me';
import { ProblemBox } from '../../../features/Problem';
import { choiceOr, text } from '../../../lib/queryString';
import { tenantState } from '../../../lib/states';
import { Badge, Button, Fact, Facts, LinkButton, Menu, Notice, Plain, Skeleton, Time } from '../../../ui/basic';
import { toast, toastError } from '../../../ui/toasts';
import { useFilters } from '../../../features/list/filters';
import { links } from '../../links';
import { Shell } from '../../shell/Shell';
import { TenantEndpoints } from './TenantEndpoints';
import { TenantSettings } from './TenantSettings';

const tabs = [['endpoints', 'Endpoints'], ['settings', 'Settings']] as const;
export const tenantQuery = { tab: choiceOr(['endpoints', 'settings'], 'endpoints'), status: text, url: text, cursor: text };

function Actions({ tenant }: { tenant: Tenant }) {
  const { route } = useLocation();
  const [dialog, setDialog] = useState<'pause' | 'delete'>();
  if (!can('operators')) return null;
  const again = () => refresh(['tenant', tenant.id], ['tenants']);
  return (
    <>
      {tenant.status === 'paused' ? (
        <Button small icon="circle-play" onClick={() => void resumeTenant(tenant.id).then(() => { toast('The tenant is active again.'); return again(); }, toastError)}>Resume</Button>
      ) : (
        <Button small icon="circle-pause" onClick={() => setDialog('pause')}>Pause</Button>
      )}
      <Menu label="More" small>
        <Button icon="trash" onClick={() => setDialog('delete')}>Delete tenant</Button>
      </Menu>
      {dialog === 'pause' && (
        <Confirm title={`Pause ${tenant.id}`} action="Pause tenant" reason="optional" onClose={() => setDialog(undefined)} run={async (reason) => {
          await pauseTenant(tenant.id, reason);
          toast('The tenant is paused.');
          await again();
        }}>
          <p>Nothing is sent to any endpoint of this tenant until it is resumed. Events are still accepted, and queue.</p>
        </Confirm>
      )}
      {dialog === 'delete' && (
        <Confirm title={`Delete ${tenant.id}`} action={`Delete ${tenant.id}`} isDanger typed={tenant.id} onClose={() => setDialog(undefined)} run={async () => {
          await deleteTenant(tenant.id);
          toast(`${tenant.id} was deleted.`);
          await refresh(['tenants']);
          route(links.tenants);
        }}>
          <p>The tenant, its {tenant.endpoint_count} endpoints with their secrets, and its keys are deleted. Queued deliveries are not sent. This cannot be undone.</p>
        </Confirm>
      )}
    </>
  );
}

export function TenantPage() {
  const { params } = useRoute();
  const id = params['tenant'] ?? '';
  const { values, hrefWith } = useFilters(tenantQuery);
  const found = useQuery(['tenant', id], (signal) => getTenant(id, signal), { every: 10_000 });
  const tenant = found.data?.value;
  return (
    <Shell
      title={id}
      crumbs={[{ text: 'Tenants', href: links.tenants }, { text: id }]}
      head={
        <div class="page-head">
          <h1 tabIndex={-1}>{tenant?.name ? <Plain text={tenant.name} /> : id}</h1>
          {tenant && <Badge state={tenantState(tenant.status)} />}
          <div class="row">
            <LinkButton small icon="send" href={links.deliveriesWith({ tenant: id })}>Deliveries</LinkButton>
            <LinkButton small icon="file" href={links.events(id)}>Events</LinkButton>
            <LinkButton small icon="mail-x" href={links.deadLettersWith({ tenant: id })}>Dead letters</LinkButton>
            <LinkButton small icon="undo" href={links.replays(id)}>Replays</LinkButton>
            {tenant && <Actions tenant={tenant} />}
          </div>
        </div>
      }
    >
      {found.isError && !tenant ? (
        <ProblemBox error={found.error} retry={() => void found.refetch()} />
      ) : !tenant ? (
        <Skeleton lines={6} />
      ) : (
        <div class="stack">
          {tenant.status === 'paused' && (
            <Notice tone="pause" icon="circle-pause">
              Paused <Time at={tenant.status_since} />{tenant.status_reason && <>: <Plain text={tenant.status_reason} /></>}. Events queue until it is resumed.
            </Notice>
          )}
          <Facts>
            <Fact name="ID"><span class="mono">{tenant.id}</span></Fact>
            <Fact name="Created"><Time at={tenant.created_at} exact /></Fact>
          </Facts>
          <nav class="tabs" aria-label="Parts of the tenant">
            {tabs.map(([tab, name]) => (
              <a key={tab} href={hrefWith({ tab, cursor: undefined })} aria-current={values.tab === tab ? 'page' : undefined}>{name}</a>
            ))}
          </nav>
          {values.tab === 'endpoints' && <TenantEndpoints tenant={id} />}
          {values.tab === 'settings' && <TenantSettings key={found.data!.etag} tenant={tenant} etag={found.data!.etag} />}
          <ApiFooter path={`/v1/tenants/${id}`} command={`postrider tenant show ${id}`} />
        </div>
      )}
    </Shell>
  );
}

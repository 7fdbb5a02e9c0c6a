import { useLocation, useRoute } from 'preact-iso';
import { useState } from 'preact/hooks';
import { listDeliveries } from '../../../api/deliveries';
import { getEndpoint, listSubscriptions, updateEndpoint, type Endpoint } from '../../../api/endpoints';
import { refresh, useQuery } from '../../../api/query';
import { ApiFooter } from '../../../features/ApiFooter';
import { EndpointActions } from '../../../features/endpoint/EndpointActions';
import { EndpointForm } from '../../../features/endpoint/EndpointForm';
import { Secrets } from '../../../features/endpoint/Secrets';
import { endpointSentences } from '../../../features/endpoint/sentence';
import { Subscriptions } from '../../../features/endpoint/Subscriptions';
import { TestPanel } from '../../../features/endpoint/TestPanel';
import { can } from '../../../features/me';
import { ProblemBox } from '../../../features/Problem';
import { hostOf, shortId } from '../../../lib/ids';
import { choiceOr } from '../../../lib/queryString';
import { endpointChips } from '../../../lib/states';
import { Badge, Card, Copy, Empty, Fact, Facts, LinkButton, Plain, Skeleton, Time } from '../../../ui/basic';
import { Icon } from '../../../ui/Icon';
import { now, zone } from '../../../ui/settings';
import { toast } from '../../../ui/toasts';
import { useFilters } from '../../../features/list/filters';
import { links } from '../../links';
import { Shell } from '../../shell/Shell';
import { AuditList } from '../audit/AuditList';
import { DeliveriesTable } from '../../../features/delivery/DeliveriesTable';
import { EndpointChart } from '../../../features/endpoint/EndpointChart';
import '../../../features/delivery/delivery.css';

const tabs = [
  ['now', 'Now'],
  ['subscriptions', 'Subscriptions'],
  ['secrets', 'Secrets'],
  ['settings', 'Settings'],
  ['test', 'Test'],
  ['history', 'History'],
] as const;
const endpointQuery = { tab: choiceOr(['now', 'subscriptions', 'secrets', 'settings', 'test', 'history'], 'now') };

function StateCard({ endpoint, tenant }: { endpoint: Endpoint; tenant: string }) {
  const [main] = endpointChips(endpoint);
  const lines = endpointSentences(endpoint, now.value, zone.value);
  const since = endpoint.failing_since ?? (endpoint.status !== 'active' ? endpoint.status_since : null);
  const tone = { good: 'good', bad: 'bad', warn: 'warn', breaker: 'warn', info: 'info', pause: 'info', neutral: 'neutral' }[main!.tone];
  return (
    <section class={`verdict is-${tone}`} aria-label="State">
      <Icon name={main!.icon} />
      <div class="grow">
        <h2>{lines[0]}</h2>
        {lines.slice(1).map((line) => <p key={line} class="muted break"><Plain text={line} /></p>)}
        <div class="row">
          <EndpointActions tenant={tenant} endpoint={endpoint} />
          {can('operate') && <LinkButton small icon="send" href={links.endpoint(tenant, endpoint.id, 'test')}>Send test</LinkButton>}
          {can('operate') && since && (
            <LinkButton small icon="undo" href={links.newReplay(tenant, { endpoint: endpoint.id, since, only: endpoint.status === 'disabled' ? 'missing' : 'failed' })}>
              Replay what failed
            </LinkButton>
          )}
        </div>
      </div>
    </section>
  );
}

function Now({ endpoint, tenant }: { endpoint: Endpoint; tenant: string }) {
  const filter = { tenant, endpoint: endpoint.id };
  const recent = useQuery(['deliveries', filter, undefined], (signal) => listDeliveries(filter, undefined, signal), { every: 5000 });
  return (
    <div class="stack">
      <EndpointChart tenant={tenant} endpoint={endpoint.id} />
      <Card title="Latest deliveries" flush actions={<LinkButton small kind="quiet" href={links.deliveriesWith({ tenant, endpoint: endpoint.id })}>All</LinkButton>}>
        {recent.isError && !recent.data ? <ProblemBox error={recent.error} /> : !recent.data ? <Skeleton lines={4} /> : recent.data.rows.length === 0 ? (
          <Empty icon="send" title="No deliveries yet"><p>They appear here when an event of a subscribed type is published.</p></Empty>
        ) : (
          <DeliveriesTable rows={recent.data.rows.slice(0, 10)} without={['Tenant', 'Endpoint']} hrefOf={(row) => links.delivery(tenant, row.id)} />
        )}
      </Card>
      <Card title="Facts">
        <Facts>
          <Fact name="URL"><span class="mono break"><Plain text={endpoint.url} /></span></Fact>
          <Fact name="ID"><Copy text={endpoint.id} label="endpoint ID"><span class="mono">{endpoint.id}</span></Copy></Fact>
          {endpoint.description && <Fact name="Description"><Plain text={endpoint.description} /></Fact>}
          <Fact name="Signature">{endpoint.signature}</Fact>
          <Fact name="Last success"><Time at={endpoint.last_success_at} exact /></Fact>
          <Fact name="Last failure"><Time at={endpoint.last_failure_at} exact /></Fact>
          <Fact name="Created"><Time at={endpoint.created_at} exact /></Fact>
          {endpoint.metadata && <Fact name="Metadata"><span class="mono break">{JSON.stringify(endpoint.metadata)}</span></Fact>}
        </Facts>
      </Card>
    </div>
  );
}

function Settings({ tenant, endpoint, etag }: { tenant: string; endpoint: Endpoint; etag: string }) {
  // The form keeps the version that it was opened with, so that a change by somebody else is noticed.
  const [opened] = useState({ etag });
  const { route } = useLocation();
  return (
    <Card title="Settings">
      <EndpointForm
        endpoint={endpoint}
        onConflict={() => { opened.etag = etag; return refresh(['endpoint', tenant, endpoint.id]); }}
        save={async (change) => {
          await updateEndpoint(tenant, endpoint.id, opened.etag, change);
          await refresh(['endpoint', tenant, endpoint.id], ['endpoints']);
          const fresh = await getEndpoint(tenant, endpoint.id);
          opened.etag = fresh.etag;
          toast('Saved.', 'url' in change ? { action: { label: 'Send test', run: () => route(links.endpoint(tenant, endpoint.id, 'test')) } } : {});
        }}
      />
    </Card>
  );
}

export function EndpointPage() {
  const { params } = useRoute();
  const tenant = params['tenant'] ?? '';
  const id = params['endpoint'] ?? '';
  const { values, hrefWith } = useFilters(endpointQuery);
  const found = useQuery(['endpoint', tenant, id], (signal) => getEndpoint(tenant, id, signal), { every: 5000 });
  const subscriptions = useQuery(['subscriptions', tenant, id], (signal) => listSubscriptions(tenant, id, signal));
  const endpoint = found.data?.value;
  const shown = tabs.filter(([name]) => name === 'now' || name === 'subscriptions' || can('operate'));
  return (
    <Shell
      title={endpoint ? hostOf(endpoint.url) : shortId(id)}
      crumbs={[{ text: 'Tenants', href: links.tenants }, { text: tenant, href: links.tenant(tenant) }, { text: endpoint ? hostOf(endpoint.url) : shortId(id) }]}
      head={
        <div class="page-head">
          <h1 tabIndex={-1}>{endpoint ? <Plain text={hostOf(endpoint.url)} /> : shortId(id)}</h1>
          {endpoint && endpointChips(endpoint).map((state) => <Badge key={state.word} state={state} />)}
        </div>
      }
    >
      {found.isError && !endpoint ? (
        <ProblemBox error={found.error} retry={() => void found.refetch()} />
      ) : !endpoint ? (
        <Skeleton lines={8} height={28} />
      ) : (
        <div class="stack">
          <StateCard endpoint={endpoint} tenant={tenant} />
          <nav class="tabs" aria-label="Parts of the endpoint">
            {shown.map(([tab, name]) => <a key={tab} href={hrefWith({ tab })} aria-current={values.tab === tab ? 'page' : undefined}>{name}</a>)}
          </nav>
          {values.tab === 'now' && <Now endpoint={endpoint} tenant={tenant} />}
          {values.tab === 'subscriptions' && (subscriptions.data ? <Subscriptions key={JSON.stringify(subscriptions.data)} tenant={tenant} endpoint={id} subscriptions={subscriptions.data} /> : <Skeleton lines={3} />)}
          {values.tab === 'secrets' && <Secrets tenant={tenant} endpoint={id} />}
          {values.tab === 'settings' && <Settings tenant={tenant} endpoint={endpoint} etag={found.data!.etag} />}
          {values.tab === 'test' && <Card title="Test"><TestPanel tenant={tenant} endpoint={endpoint} patterns={(subscriptions.data ?? []).map((each) => each.pattern)} /></Card>}
          {values.tab === 'history' && <Card title="Changes" flush><AuditList filter={{ object: id }} /></Card>}
          <ApiFooter path={`/v1/tenants/${tenant}/endpoints/${id}`} command={`postrider endpoint show ${tenant} ${id}`} />
        </div>
      )}
    </Shell>
  );
}

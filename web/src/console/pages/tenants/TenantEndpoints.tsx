import { listEndpoints, type Endpoint } from '../../../api/endpoints';
import { useQuery } from '../../../api/query';
import { can } from '../../../features/me';
import { ProblemBox } from '../../../features/Problem';
import { hostOf, pathOf, shortId } from '../../../lib/ids';
import { formatCapped } from '../../../lib/numbers';
import { endpointChips } from '../../../lib/states';
import { Badge, Card, Empty, LinkButton, Plain, Skeleton, Time } from '../../../ui/basic';
import { Table, type Column } from '../../../ui/Table';
import { FilterBar, FilterChoice, FilterText } from '../../../features/list/FilterBar';
import { useFilters } from '../../../features/list/filters';
import { links } from '../../links';
import { Pager } from '../../../features/list/Pager';
import { tenantQuery } from './TenantPage';

const columns: Column<Endpoint>[] = [
  {
    name: 'Endpoint',
    cell: (row) => (
      <>
        <strong><Plain text={hostOf(row.url)} /></strong>
        <span class="faint"><Plain text={pathOf(row.url)} /></span>
      </>
    ),
    card: 'lead',
    title: (row) => row.url,
  },
  { name: 'State', width: '250px', cell: (row) => <span class="row nowrap">{endpointChips(row).map((state) => <Badge key={state.word} state={state} />)}</span>, card: 'lead push' },
  { name: 'ID', width: '150px', cell: (row) => <span class="mono">{shortId(row.id)}</span>, card: 'off' },
  { name: 'Failing since', width: '130px', cell: (row) => <Time at={row.failing_since} />, card: 'off' },
  { name: 'Last success', width: '120px', cell: (row) => <Time at={row.last_success_at} />, card: 'second' },
  { name: 'Pending', width: '90px', end: true, cell: (row) => formatCapped(row.pending, row.pending_is_capped), card: 'second push' },
];

const statuses = [['active', 'Active'], ['paused', 'Paused'], ['disabled', 'Disabled']] as const;

export function TenantEndpoints({ tenant }: { tenant: string }) {
  const { values, set, hrefWith } = useFilters(tenantQuery);
  const status = statuses.find(([name]) => name === values.status)?.[0];
  const filter = { status, url: values.url };
  const list = useQuery(['endpoints', tenant, filter, values.cursor], (signal) => listEndpoints(tenant, filter, values.cursor, signal), { every: 10_000, keepPrevious: true });
  const count = [status, values.url].filter(Boolean).length;
  return (
    <>
      <div class="row">
        <div class="grow">
          <FilterBar count={count} onClear={() => set({ status: undefined, url: undefined })}>
            <FilterChoice label="Status" value={status} choices={statuses} onChange={(value) => set({ status: value })} />
            <FilterText label="URL" value={values.url} placeholder="https://…" width="260px" onChange={(url, isFinal) => set({ url }, !isFinal)} />
          </FilterBar>
        </div>
        {can('operate') && <LinkButton kind="primary" small icon="plus" href={links.newEndpoint(tenant)}>New endpoint</LinkButton>}
      </div>
      <Card flush>
        {list.isError && !list.data ? (
          <ProblemBox error={list.error} retry={() => void list.refetch()} />
        ) : !list.data ? (
          <Skeleton lines={5} height={28} />
        ) : list.data.rows.length === 0 ? (
          <Empty icon="webhook" title={count > 0 ? 'No endpoint matches these filters' : 'No endpoints yet'}>
            {count === 0 && <p>An endpoint is a URL of this customer to which events are delivered.</p>}
            {count === 0 && can('operate') && <LinkButton kind="primary" href={links.newEndpoint(tenant)}>New endpoint</LinkButton>}
          </Empty>
        ) : (
          <Table label="Endpoints" rows={list.data.rows} keyOf={(row) => row.id} hrefOf={(row) => links.endpoint(tenant, row.id)} isStale={list.isPlaceholderData} columns={columns} />
        )}
      </Card>
      <Pager cursor={values.cursor} next={list.data?.next} hrefWith={(cursor) => hrefWith({ cursor })} />
    </>
  );
}

import { useLocation } from 'preact-iso';
import { useEffect, useRef } from 'preact/hooks';
import { deliveriesPath, listDeliveries, type Delivery, type DeliveryFilter } from '../../../api/deliveries';
import { useQuery } from '../../../api/query';
import { ApiFooter } from '../../../features/ApiFooter';
import { me } from '../../../features/me';
import { ProblemBox } from '../../../features/Problem';
import { writeQuery } from '../../../lib/queryString';
import { deliveryState } from '../../../lib/states';
import { quote } from '../../../lib/curl';
import { Button, Card, Empty, Menu, Skeleton } from '../../../ui/basic';
import { Code } from '../../../ui/Code';
import { now } from '../../../ui/settings';
import { FilterBar, FilterChoice, FilterText, rangeChoices } from '../../../features/list/FilterBar';
import { boundsOf, useFilters } from '../../../features/list/filters';
import { links } from '../../links';
import { Shell } from '../../shell/Shell';
import { Pager } from '../../../features/list/Pager';
import { SidePanel } from '../../../features/list/SidePanel';
import { useNewRows } from '../../../features/list/useNewRows';
import { DeliveriesTable } from '../../../features/delivery/DeliveriesTable';
import { deliveriesQuery, deliveryStatuses, type DeliveriesQuery } from './deliveriesQuery';
import { DeliveryView } from '../../../features/delivery/DeliveryView';

const statusChoices = deliveryStatuses.map((status) => [status, deliveryState(status).word] as const);

export function filterOf(values: DeliveriesQuery, at: number): DeliveryFilter {
  const { tenant, status, endpoint, event, type, subject } = values;
  return { tenant: me.value?.tenant_id ?? tenant, status, endpoint, event, type, subject, ...boundsOf(values, at) };
}

function commandOf(filter: DeliveryFilter): string {
  const flags = Object.entries(filter).filter(([, value]) => value).map(([name, value]) => ` --${name} ${quote(String(value))}`);
  return `postrider delivery list${flags.join('')}`;
}

function Nothing({ filtered, hasMore, onClear }: { filtered: boolean; hasMore: boolean; onClear: () => void }) {
  if (hasMore)
    return (
      <Empty icon="search" title="Nothing found yet">
        <p>The newest rows do not match. Older ones may: continue with “Older”.</p>
      </Empty>
    );
  if (filtered)
    return (
      <Empty icon="search" title="No delivery matches these filters">
        <Button onClick={onClear}>Clear filters</Button>
      </Empty>
    );
  return (
    <Empty icon="send" title="No deliveries yet">
      <p>A delivery is the task of getting one event to one endpoint. Publish an event for a tenant that has an endpoint:</p>
      <Code
        label="curl"
        text={`curl -sS ${location.origin}/v1/tenants/TENANT/events \\\n  -H "authorization: Bearer $POSTRIDER_KEY" -H 'content-type: application/json' \\\n  -d '{"type":"invoice.paid","data":{"amount":42}}'`}
      />
    </Empty>
  );
}

export function DeliveriesPage() {
  const { values, set, hrefWith, unknown } = useFilters(deliveriesQuery);
  const { route } = useLocation();
  const minute = Math.floor(now.value / 60_000) * 60_000;
  const filter = filterOf(values, minute);
  const list = useQuery(['deliveries', filter, values.cursor], (signal) => listDeliveries(filter, values.cursor, signal), {
    every: values.cursor ? undefined : 5000,
    keepPrevious: true,
  });
  const { cursor, open, ...filters } = values;
  const count = Object.values(filters).filter(Boolean).length;
  const clear = () => route(links.deliveries);
  const { rows, waiting, show } = useNewRows(list.data?.rows ?? [], (row) => row.id, JSON.stringify([filters, cursor]));
  const opened = useOpened(rows, open);
  const exportPath = deliveriesPath(filter);
  const joined = (format: string) => `${exportPath}${exportPath.includes('?') ? '&' : '?'}format=${format}`;
  return (
    <Shell
      title="Deliveries"
      crumbs={[{ text: 'Deliveries' }]}
      head={
        <div class="page-head">
          <h1 tabIndex={-1}>Deliveries</h1>
          <div class="row">
            <Menu label="Export" icon="download" small>
              <a class="button" href={joined('csv')} download="deliveries.csv">CSV</a>
              <a class="button" href={joined('ndjson')} download="deliveries.ndjson">NDJSON</a>
            </Menu>
          </div>
        </div>
      }
    >
      <FilterBar unknown={unknown} count={count} onClear={clear}>
        {!me.value?.tenant_id && <FilterText label="Tenant" value={values.tenant} onChange={(tenant, isFinal) => set({ tenant }, !isFinal)} />}
        <FilterChoice label="Status" value={values.status} choices={statusChoices} onChange={(status) => set({ status: status as DeliveriesQuery['status'] })} />
        <FilterText label="Event type" value={values.type} placeholder="invoice.*" onChange={(type, isFinal) => set({ type }, !isFinal)} />
        <FilterText label="Subject" value={values.subject} onChange={(subject, isFinal) => set({ subject }, !isFinal)} />
        <FilterText label="Endpoint" value={values.endpoint} onChange={(endpoint, isFinal) => set({ endpoint }, !isFinal)} />
        <FilterText label="Event ID" value={values.event} onChange={(event, isFinal) => set({ event }, !isFinal)} />
        <FilterChoice label="Time" value={values.range} choices={rangeChoices} any="All" onChange={(range) => set({ range: range as DeliveriesQuery['range'], since: undefined, until: undefined })} />
      </FilterBar>
      <Card flush>
        {list.isError && !list.data ? (
          <ProblemBox error={list.error} retry={() => void list.refetch()} />
        ) : !list.data ? (
          <Skeleton lines={10} height={28} />
        ) : rows.length === 0 ? (
          <Nothing filtered={count > 0} hasMore={!!list.data.next} onClear={clear} />
        ) : (
          <>
            {waiting > 0 && (
              <button type="button" class="new-rows" onClick={show}>
                {waiting} new, show
              </button>
            )}
            <DeliveriesTable
              rows={rows}
              currentKey={open}
              isStale={list.isPlaceholderData}
              hrefOf={(row) => links.delivery(row.tenant_id, row.id)}
              onOpen={(row) => {
                if (matchMedia('(min-width: 1100px)').matches) route(hrefWith({ open: row.id }), !!open);
                else route(links.delivery(row.tenant_id, row.id));
              }}
            />
          </>
        )}
      </Card>
      <Pager cursor={cursor} next={list.data?.next} hrefWith={(next) => `${links.deliveries}${writeQuery(deliveriesQuery, { ...values, open: undefined, cursor: next })}`} />
      <ApiFooter path={exportPath} command={commandOf(filter)} />
      {opened && (
        <SidePanel label="Delivery" onClose={() => route(hrefWith({ open: undefined }), true)} fullHref={links.delivery(opened.tenant_id, opened.id)}>
          <DeliveryView key={opened.id} tenant={opened.tenant_id} id={opened.id} links={links} isPanel />
        </SidePanel>
      )}
    </Shell>
  );
}

/** The row in the panel stays there when the list moves on. */
function useOpened(rows: Delivery[], open: string | undefined): Delivery | undefined {
  const kept = useRef<Delivery | undefined>(undefined);
  const found = rows.find((row) => row.id === open);
  useEffect(() => {
    if (found) kept.current = found;
  }, [found]);
  if (!open) return undefined;
  return found ?? (kept.current?.id === open ? kept.current : undefined);
}

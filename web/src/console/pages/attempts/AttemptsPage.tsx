import { useLocation } from 'preact-iso';
import { listAttempts, type Attempt, type AttemptFilter } from '../../../api/attempts';
import { useQuery } from '../../../api/query';
import { ApiFooter } from '../../../features/ApiFooter';
import { me } from '../../../features/me';
import { quote } from '../../../lib/curl';
import { hostOf, pathOf } from '../../../lib/ids';
import { choice, text, type Values } from '../../../lib/queryString';
import { deliveryState } from '../../../lib/states';
import { formatMicroseconds } from '../../../lib/time';
import { Badge, Button, Card, Empty, Plain, Time } from '../../../ui/basic';
import { now } from '../../../ui/settings';
import { Table, type Column } from '../../../ui/Table';
import { FilterBar, FilterChoice, FilterText, rangeChoices } from '../../../features/list/FilterBar';
import { boundsOf, useFilters } from '../../../features/list/filters';
import { links } from '../../links';
import { ListCard } from '../../../features/list/ListCard';
import { Shell } from '../../shell/Shell';
import { useNewRows } from '../../../features/list/useNewRows';
import { Pager } from '../../../features/list/Pager';

const outcomes = ['delivered', 'retrying', 'dead_letter', 'canceled'] as const;
const attemptsQuery = {
  tenant: text, outcome: choice(outcomes), status_code: text, error: text, endpoint: text, type: text,
  range: choice(['1h', '24h', '7d', '30d']), since: text, until: text, cursor: text,
};
type AttemptsQuery = Values<typeof attemptsQuery>;

function isStatusCode(text: string | undefined): boolean {
  return !text || /^[1-5]\d\d$/.test(text);
}

function filterOf(values: AttemptsQuery, at: number): AttemptFilter {
  const { outcome, error, endpoint, type } = values;
  const status_code = values.status_code ? Number(values.status_code) : undefined;
  return { tenant: me.value?.tenant_id ?? values.tenant, outcome, status_code, error, endpoint, type, ...boundsOf(values, at) };
}

function pathTo(filter: AttemptFilter): string {
  const { tenant, ...rest } = filter;
  const given = Object.entries(rest).filter(([, value]) => value).map(([name, value]) => [name, String(value)]);
  const query = new URLSearchParams(given).toString();
  const base = tenant ? `/v1/tenants/${encodeURIComponent(tenant)}/attempts` : '/v1/attempts';
  return query ? `${base}?${query}` : base;
}

function commandOf(filter: AttemptFilter): string {
  const flags = Object.entries(filter).filter(([, value]) => value).map(([name, value]) => ` --${name.replace('_', '-')} ${quote(String(value))}`);
  return `postrider delivery attempts${flags.join('')}`;
}

/** A failed probe has the number of the attempt that it stands before, so the number alone is not enough. */
function keyOf(row: Attempt): string {
  return `${row.delivery_id} ${row.attempt} ${row.started_at}`;
}

const columns: Column<Attempt>[] = [
  { name: 'Event type', width: '18%', cell: (row) => <strong><Plain text={row.event_type ?? row.event_id} /></strong>, card: 'lead', title: (row) => row.event_type ?? undefined },
  { name: 'Outcome', width: '148px', cell: (row) => <Badge state={deliveryState(row.outcome)} />, card: 'lead push' },
  { name: 'Tenant', width: '12%', cell: (row) => row.tenant_id, card: 'off' },
  { name: 'Endpoint', cell: (row) => <><Plain text={hostOf(row.url)} /><span class="faint"><Plain text={pathOf(row.url)} /></span></>, card: 'second', title: (row) => row.url ?? undefined },
  { name: 'Attempt', width: '80px', end: true, cell: (row) => row.attempt, card: 'off' },
  { name: 'Result', width: '150px', cell: (row) => <span class="mono">{row.status_code ?? row.error ?? '–'}</span>, card: 'second', title: (row) => row.error_detail ?? undefined },
  { name: 'Took', width: '90px', end: true, cell: (row) => formatMicroseconds(row.phases.total_us), card: 'off' },
  { name: 'Started', width: '120px', end: true, cell: (row) => <Time at={row.started_at} />, card: 'second push' },
];

function Nothing({ count, hasMore, onClear }: { count: number; hasMore: boolean; onClear: () => void }) {
  if (hasMore) return <Empty icon="search" title="Nothing found yet"><p>The newest attempts do not match. Older ones may: continue with “Older”.</p></Empty>;
  if (count > 0) return <Empty icon="search" title="No attempt matches these filters"><Button onClick={onClear}>Clear filters</Button></Empty>;
  return <Empty icon="activity" title="No attempts yet"><p>An attempt is one HTTP request for a delivery. A delivery that is retried has several.</p></Empty>;
}

export function AttemptsPage() {
  const { values, set, hrefWith, unknown } = useFilters(attemptsQuery);
  const isValid = isStatusCode(values.status_code);
  const { route } = useLocation();
  const filter = filterOf(values, Math.floor(now.value / 60_000) * 60_000);
  const list = useQuery(['attempts', filter, values.cursor], (signal) => listAttempts(filter, values.cursor, signal), { every: values.cursor ? undefined : 5000, keepPrevious: true, enabled: isValid });
  const { cursor, ...filters } = values;
  const count = Object.values(filters).filter(Boolean).length;
  const clear = () => route(links.attempts);
  const { rows, waiting, show } = useNewRows(list.data?.rows ?? [], keyOf, JSON.stringify([filters, cursor]));
  return (
    <Shell title="Attempts" crumbs={[{ text: 'Attempts' }]}>
      <FilterBar count={count} onClear={clear} unknown={unknown}>
        {!me.value?.tenant_id && <FilterText label="Tenant" value={values.tenant} onChange={(tenant, isFinal) => set({ tenant }, !isFinal)} />}
        <FilterChoice label="Outcome" value={values.outcome} choices={outcomes.map((each) => [each, deliveryState(each).word] as const)} onChange={(outcome) => set({ outcome: outcome as AttemptsQuery['outcome'] })} />
        <FilterText label="Status code" value={values.status_code} placeholder="502" isInvalid={!isValid} onChange={(status_code, isFinal) => set({ status_code }, !isFinal)} />
        <FilterText label="Error" value={values.error} placeholder="connection_refused" onChange={(error, isFinal) => set({ error }, !isFinal)} />
        <FilterText label="Event type" value={values.type} onChange={(type, isFinal) => set({ type }, !isFinal)} />
        <FilterText label="Endpoint" value={values.endpoint} onChange={(endpoint, isFinal) => set({ endpoint }, !isFinal)} />
        <FilterChoice label="Time" value={values.range} choices={rangeChoices} any="All" onChange={(range) => set({ range: range as AttemptsQuery['range'], since: undefined, until: undefined })} />
      </FilterBar>
      {!isValid ? (
        <Card>
          <Empty icon="triangle-alert" title="This is not a status code">
            <p>“<Plain text={values.status_code!.slice(0, 100)} />” was entered. Enter a number from 100 to 599, such as 502.</p>
            <Button onClick={() => set({ status_code: undefined })}>Clear this filter</Button>
          </Empty>
        </Card>
      ) : (
        <ListCard list={list} isEmpty={() => rows.length === 0} empty={<Nothing count={count} hasMore={!!list.data?.next} onClear={clear} />}>
          {() => (
            <>
              {waiting > 0 && <button type="button" class="new-rows" onClick={show}>{waiting} new, show</button>}
              <Table label="Attempts" rows={rows} keyOf={keyOf} hrefOf={(row) => links.delivery(row.tenant_id, row.delivery_id)} isStale={list.isPlaceholderData} columns={columns} />
            </>
          )}
        </ListCard>
      )}
      <Pager cursor={cursor} next={list.data?.next} hrefWith={(next) => hrefWith({ cursor: next })} />
      <ApiFooter path={pathTo(filter)} command={commandOf(filter)} />
    </Shell>
  );
}

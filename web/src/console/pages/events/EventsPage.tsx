import { useRoute } from 'preact-iso';
import { listEvents } from '../../../api/events';
import { useQuery } from '../../../api/query';
import { ApiFooter } from '../../../features/ApiFooter';
import { ProblemBox } from '../../../features/Problem';
import { shortId } from '../../../lib/ids';
import { choice, text } from '../../../lib/queryString';
import { Button, Card, Empty, Plain, Skeleton, Time } from '../../../ui/basic';
import { now } from '../../../ui/settings';
import { Table } from '../../../ui/Table';
import { FilterBar, FilterChoice, FilterText, rangeChoices } from '../../../features/list/FilterBar';
import { boundsOf, useFilters } from '../../../features/list/filters';
import { links } from '../../links';
import { Shell } from '../../shell/Shell';
import { useNewRows } from '../../../features/list/useNewRows';
import { Pager } from '../../../features/list/Pager';

const eventsQuery = { type: text, subject: text, range: choice(['1h', '24h', '7d', '30d']), since: text, until: text, cursor: text };

export function EventsPage() {
  const { params } = useRoute();
  const tenant = params['tenant'] ?? '';
  const { values, set, hrefWith, unknown } = useFilters(eventsQuery);
  const filter = { type: values.type, subject: values.subject, ...boundsOf(values, Math.floor(now.value / 60_000) * 60_000) };
  const list = useQuery(['events', tenant, filter, values.cursor], (signal) => listEvents(tenant, filter, values.cursor, signal), {
    every: values.cursor ? undefined : 5000,
    keepPrevious: true,
  });
  const count = [values.type, values.subject, values.range, values.since, values.until].filter(Boolean).length;
  const { rows, waiting, show } = useNewRows(list.data?.rows ?? [], (row) => row.id, JSON.stringify(values));
  const clear = () => set({ type: undefined, subject: undefined, range: undefined, since: undefined, until: undefined });
  return (
    <Shell title={`Events of ${tenant}`} crumbs={[{ text: 'Tenants', href: links.tenants }, { text: tenant, href: links.tenant(tenant) }, { text: 'Events' }]}>
      <FilterBar unknown={unknown} count={count} onClear={clear}>
        <FilterText label="Event type" value={values.type} placeholder="invoice.*" onChange={(type, isFinal) => set({ type }, !isFinal)} />
        <FilterText label="Subject" value={values.subject} onChange={(subject, isFinal) => set({ subject }, !isFinal)} />
        <FilterChoice label="Time" value={values.range} choices={rangeChoices} any="All" onChange={(range) => set({ range: range as '1h', since: undefined, until: undefined })} />
      </FilterBar>
      <Card flush>
        {list.isError && !list.data ? (
          <ProblemBox error={list.error} retry={() => void list.refetch()} />
        ) : !list.data ? (
          <Skeleton lines={8} height={28} />
        ) : rows.length === 0 ? (
          <Empty icon="file" title={list.data.next ? 'Nothing found yet' : count > 0 ? 'No event matches these filters' : 'No events yet'}>
            {list.data.next ? <p>The newest rows do not match. Older ones may: continue with “Older”.</p> : count > 0 ? <Button onClick={clear}>Clear filters</Button> : <p>An event is something that happened in your application, published once for one tenant.</p>}
          </Empty>
        ) : (
          <>
            {waiting > 0 && <button type="button" class="new-rows" onClick={show}>{waiting} new, show</button>}
            <Table
              label="Events"
              rows={rows}
              keyOf={(row) => row.id}
              hrefOf={(row) => links.event(tenant, row.id)}
              isStale={list.isPlaceholderData}
              columns={[
                { name: 'Event type', cell: (row) => <strong><Plain text={row.type} /></strong>, card: 'lead' },
                { name: 'Subject', width: '25%', cell: (row) => (row.subject ? <Plain text={row.subject} /> : <span class="faint">–</span>), card: 'second' },
                { name: 'Version', width: '90px', cell: (row) => row.version ?? <span class="faint">–</span> },
                { name: 'ID', width: '170px', cell: (row) => <span class="mono">{shortId(row.id)}</span>, card: 'second push' },
                { name: 'Created', width: '130px', end: true, cell: (row) => <Time at={row.created_at} />, card: 'lead push' },
              ]}
            />
          </>
        )}
      </Card>
      <Pager cursor={values.cursor} next={list.data?.next} hrefWith={(cursor) => hrefWith({ cursor })} />
      <ApiFooter path={`/v1/tenants/${tenant}/events`} command={`postrider event list ${tenant}`} />
    </Shell>
  );
}

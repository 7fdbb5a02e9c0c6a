import { useRoute } from 'preact-iso';
import { useState } from 'preact/hooks';
import { getEvent, type EventWithText } from '../../../api/events';
import { useQuery } from '../../../api/query';
import { ApiFooter } from '../../../features/ApiFooter';
import { me } from '../../../features/me';
import { ProblemBox } from '../../../features/Problem';
import { unmatched } from '../../../lib/causes';
import { shortId } from '../../../lib/ids';
import { elementTexts, memberText } from '../../../lib/jsonText';
import { Card, Copy, Empty, Notice, Plain, Skeleton, Time } from '../../../ui/basic';
import { Json } from '../../../ui/Code';
import { Table } from '../../../ui/Table';
import { links } from '../../links';
import { Shell } from '../../shell/Shell';
import { DeliveriesTable } from '../../../features/delivery/DeliveriesTable';

function Data({ found }: { found: EventWithText }) {
  const versions = found.versionsText ? elementTexts(found.versionsText) : [];
  const [shown, setShown] = useState(0);
  if (me.value?.payloads === false) return <Empty icon="key-round" title="Hidden"><p>This key does not see payloads.</p></Empty>;
  if (versions.length > 0) {
    const dataText = memberText(versions[shown] ?? '', 'data');
    return (
      <div class="stack tight">
        <div class="tabs" role="tablist">
          {versions.map((version, index) => (
            <button key={index} type="button" role="tab" class="tab" aria-selected={index === shown} onClick={() => setShown(index)}>
              {JSON.parse(memberText(version, 'version') ?? '""') as string}
              {index === 0 && ' (default)'}
            </button>
          ))}
        </div>
        {dataText && <Json text={dataText} label="Event data" />}
      </div>
    );
  }
  if (!found.dataText || found.dataText === 'null') return <Empty icon="trash" title="Erased"><p>The payload of this event was erased.</p></Empty>;
  return <Json text={found.dataText} label="Event data" />;
}

export function EventPage() {
  const { params } = useRoute();
  const tenant = params['tenant'] ?? '';
  const id = params['event'] ?? '';
  const found = useQuery(['event', tenant, id], (signal) => getEvent(tenant, id, signal), { every: 5000 });
  const event = found.data?.event;
  return (
    <Shell
      title={event ? `${event.type} · ${shortId(id)}` : shortId(id)}
      crumbs={[{ text: 'Tenants', href: links.tenants }, { text: tenant, href: links.tenant(tenant) }, { text: 'Events', href: links.events(tenant) }, { text: shortId(id) }]}
      head={
        <div class="page-head">
          <h1 tabIndex={-1}>{event ? <Plain text={event.type} /> : shortId(id)}</h1>
          {event?.subject && <span class="muted">about <strong><Plain text={event.subject} /></strong></span>}
          <Copy text={id} label="event ID"><span class="mono">{shortId(id)}</span></Copy>
          {event && <Time at={event.created_at} />}
        </div>
      }
    >
      {found.isError && !event ? (
        <ProblemBox error={found.error} retry={() => void found.refetch()} />
      ) : !event ? (
        <Skeleton lines={6} />
      ) : (
        <div class="stack">
          {event.explanation && <Notice tone="warn" icon="triangle-alert"><Plain text={event.explanation} /></Notice>}
          <Card title="Deliveries" flush>
            {event.deliveries.length === 0 ? (
              <Empty icon="send" title="No endpoint received this event"><p>The reasons are below.</p></Empty>
            ) : (
              <DeliveriesTable rows={event.deliveries} without={['Event type', 'Tenant', 'Subject']} hrefOf={(row) => links.delivery(tenant, row.id)} />
            )}
          </Card>
          {event.unmatched_endpoints.length > 0 && (
            <Card title="Endpoints without a delivery" flush>
              <Table
                label="Endpoints without a delivery"
                rows={event.unmatched_endpoints}
                keyOf={(row) => row.endpoint_id}
                hrefOf={(row) => links.endpoint(tenant, row.endpoint_id)}
                columns={[
                  { name: 'Endpoint', width: '220px', cell: (row) => <span class="mono">{shortId(row.endpoint_id)}</span>, card: 'lead' },
                  { name: 'Why not', cell: (row) => unmatched[row.reason] ?? row.reason, wrap: true, card: 'second' },
                ]}
              />
            </Card>
          )}
          <Card title="Data"><Data found={found.data!} /></Card>
          <ApiFooter
            path={`/v1/tenants/${tenant}/events/${id}`}
            command={`postrider event show ${tenant} ${id}`}
            sql={`select delivery, endpoint, status, attempts from postrider.deliveries_of('${tenant}', '${id}');`}
          />
        </div>
      )}
    </Shell>
  );
}

import type { Delivery } from '../../api/deliveries';
import { hostOf, pathOf } from '../../lib/ids';
import { deliveryState } from '../../lib/states';
import { formatCountdown, parseTime } from '../../lib/time';
import { Badge, Plain, Time } from '../../ui/basic';
import { now } from '../../ui/settings';
import { Table, type Column } from '../../ui/Table';

export function lastResult(delivery: Delivery): string {
  if (delivery.last_status_code) return String(delivery.last_status_code);
  return delivery.last_error ?? '–';
}

function NextAttempt({ delivery }: { delivery: Delivery }) {
  if (!delivery.next_attempt_at || !['pending', 'retrying'].includes(delivery.status)) return <span class="faint">–</span>;
  const left = parseTime(delivery.next_attempt_at) - now.value;
  return <span class="number">{left > 0 ? `in ${formatCountdown(left)}` : 'due'}</span>;
}

const columns: Column<Delivery>[] = [
  {
    name: 'Event type',
    width: '18%',
    cell: (row) => <strong><Plain text={row.event_type ?? row.event_id} /></strong>,
    card: 'lead',
    title: (row) => row.event_type ?? undefined,
  },
  { name: 'Status', width: '148px', cell: (row) => <Badge state={deliveryState(row.status)} />, card: 'lead push' },
  { name: 'Tenant', width: '10%', cell: (row) => row.tenant_id, card: 'off' },
  { name: 'Subject', width: '9%', cell: (row) => (row.subject ? <Plain text={row.subject} /> : <span class="faint">–</span>), title: (row) => row.subject ?? undefined },
  {
    name: 'Endpoint',
    width: '20%',
    cell: (row) => (
      <>
        <Plain text={hostOf(row.url)} />
        <span class="faint"><Plain text={pathOf(row.url)} /></span>
      </>
    ),
    card: 'second',
    title: (row) => row.url ?? undefined,
  },
  { name: 'Attempts', width: '84px', end: true, cell: (row) => `${row.attempts} / ${row.max_attempts}` },
  { name: 'Last result', width: '140px', cell: (row) => <span class="mono">{lastResult(row)}</span>, card: 'second', title: (row) => row.last_error_detail ?? undefined },
  { name: 'Next', width: '92px', end: true, cell: (row) => <NextAttempt delivery={row} /> },
  { name: 'Created', width: '120px', end: true, cell: (row) => <Time at={row.created_at} />, card: 'second push' },
];

export function DeliveriesTable(props: {
  rows: Delivery[];
  hrefOf: (row: Delivery) => string;
  onOpen?: (row: Delivery) => void;
  currentKey?: string;
  isStale?: boolean;
  without?: string[];
}) {
  return (
    <Table
      label="Deliveries"
      columns={columns.filter((column) => !props.without?.includes(column.name))}
      rows={props.rows}
      keyOf={(row) => row.id}
      hrefOf={props.hrefOf}
      onOpen={props.onOpen}
      currentKey={props.currentKey}
      isStale={props.isStale}
    />
  );
}

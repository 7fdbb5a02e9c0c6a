import { deadLetterSummary } from '../../../api/deadLetters';
import { getBrakes, listNodes } from '../../../api/cluster';
import { useQuery } from '../../../api/query';
import { getStats } from '../../../api/stats';
import { ApiFooter } from '../../../features/ApiFooter';
import { me } from '../../../features/me';
import { ProblemBox } from '../../../features/Problem';
import { causes } from '../../../lib/causes';
import { hostOf, shortId } from '../../../lib/ids';
import { formatCount, formatShare } from '../../../lib/numbers';
import { choiceOr, type Values } from '../../../lib/queryString';
import { formatAge, parseTime, ranges, type Range } from '../../../lib/time';
import { Card, Empty, Plain, Skeleton } from '../../../ui/basic';
import { Code } from '../../../ui/Code';
import { now } from '../../../ui/settings';
import { Table } from '../../../ui/Table';
import { useFilters } from '../../../features/list/filters';
import { links } from '../../links';
import { Shell } from '../../shell/Shell';
import { sum, Traffic } from '../../../features/Traffic';
import './overview.css';

const overviewQuery = { range: choiceOr(['1h', '24h', '7d', '30d'], '24h') };
type OverviewQuery = Values<typeof overviewQuery>;

function Tile({ label, value, note, tone, href }: { label: string; value: string; note?: string; tone?: 'bad' | 'warn'; href?: string }) {
  const body = (
    <>
      <span class="tile-label">{label}</span>
      <strong class={tone ? `tile-value number is-${tone}` : 'tile-value number'}>{value}</strong>
      <span class="tile-note">{note}</span>
    </>
  );
  return href ? <a class="tile" href={href}>{body}</a> : <div class="tile">{body}</div>;
}

function Welcome() {
  return (
    <Empty icon="webhook" title="Nothing was sent in this time">
      <p>Create a tenant with an endpoint and publish an event. It appears here within seconds.</p>
      <Code
        label="curl"
        text={`curl -sS ${location.origin}/v1/tenants -H "authorization: Bearer $POSTRIDER_KEY" \\\n  -H 'content-type: application/json' -d '{"id":"acme","name":"Acme"}'`}
      />
    </Empty>
  );
}

export function OverviewPage() {
  const { values, set } = useFilters(overviewQuery);
  const minute = Math.floor(now.value / 60_000) * 60_000;
  const since = minute - ranges[values.range as Range];
  const sinceText = new Date(since).toISOString();
  const tenant = me.value?.tenant_id ?? undefined;
  const ask = (by: 'hour' | 'endpoint' | 'tenant') => (signal: AbortSignal) => getStats({ by, since: sinceText, tenant }, signal);
  const hours = useQuery(['stats', 'hour', tenant, sinceText], ask('hour'), { every: 10_000, keepPrevious: true });
  const endpoints = useQuery(['stats', 'endpoint', tenant, sinceText], ask('endpoint'), { every: 30_000, keepPrevious: true });
  const tenants = useQuery(['stats', 'tenant', sinceText], ask('tenant'), { every: 30_000, keepPrevious: true, enabled: !tenant });
  const dead = useQuery(['dead-letters', 'summary', tenant], (signal) => deadLetterSummary(tenant, signal), { every: 10_000 });
  const nodes = useQuery(['nodes'], (signal) => listNodes(signal), { every: 10_000, enabled: !tenant });
  const brakes = useQuery(['brakes'], (signal) => getBrakes(signal), { every: 5000, enabled: !tenant });
  const rows = hours.data ?? [];
  const delivered = sum(rows, 'delivered');
  const failed = sum(rows, 'dead_lettered');
  const alive = nodes.data?.data.filter((node) => node.alive).length ?? 0;
  const failing = (endpoints.data ?? []).filter((row) => row.dead_lettered + row.retried > 0).sort((a, b) => b.dead_lettered + b.retried - a.dead_lettered - a.retried).slice(0, 8);
  const busiest = [...(tenants.data ?? [])].sort((a, b) => b.attempts - a.attempts).slice(0, 8);
  return (
    <Shell
      title="Overview"
      crumbs={[{ text: 'Overview' }]}
      head={
        <div class="page-head">
          <h1 tabIndex={-1}>Overview</h1>
          <div class="row segmented" role="group" aria-label="Time range">
            {(Object.keys(ranges) as Range[]).map((range) => (
              <button key={range} type="button" class="button small" aria-pressed={values.range === range} onClick={() => set({ range: range as OverviewQuery['range'] })}>
                {range}
              </button>
            ))}
          </div>
        </div>
      }
    >
      <div class="stack">
        <div class="tiles">
          <Tile label="Delivered" value={hours.data ? formatCount(delivered) : '…'} note={hours.data ? `${formatShare(sum(rows, 'delivered'), delivered + failed)} of finished` : ''} href={`${links.deliveries}?status=delivered&range=${values.range}`} />
          <Tile label="Retrying attempts" value={hours.data ? formatCount(sum(rows, 'retried')) : '…'} note="failed and retried" tone={sum(rows, 'retried') > 0 ? 'warn' : undefined} href={`${links.deliveries}?status=retrying`} />
          <Tile label="Unresolved dead letters" value={dead.data ? formatCount(dead.data.unresolved) : '…'} note={dead.data?.unresolved ? 'need a decision' : 'nothing to do'} tone={dead.data?.unresolved ? 'bad' : undefined} href={links.deadLetters} />
          <Tile label="Attempts" value={hours.data ? formatCount(sum(rows, 'attempts')) : '…'} note={rows.length ? `${formatCount(Math.round(Math.max(...rows.map((row) => row.latency_ms_average ?? 0))))} ms, slowest hour` : ''} />
          {!tenant && <Tile label="Nodes" value={nodes.data ? `${alive} of ${nodes.data.data.length}` : '…'} note={nodes.data?.free_buckets.length ? `${nodes.data.free_buckets.length} buckets without owner` : 'all buckets owned'} tone={nodes.data && (alive === 0 || nodes.data.free_buckets.length > 0) ? 'bad' : undefined} />}
          {brakes.data && (brakes.data.pause_all || brakes.data.drain_rate_per_second !== null || brakes.data.retry_rate_per_second !== null) && <Tile label="Brakes" value={brakes.data.pause_all ? 'Paused' : 'Limited'} tone="warn" note={brakes.data.reason ?? ''} />}
        </div>
        <Card title="Attempts">
          {hours.isError && !hours.data ? (
            <ProblemBox error={hours.error} retry={() => void hours.refetch()} />
          ) : !hours.data ? (
            <Skeleton lines={1} height={140} />
          ) : rows.length === 0 ? (
            <Welcome />
          ) : (
            <Traffic rows={rows} since={since} until={now.value} />
          )}
        </Card>
        <div class="columns">
          <Card title="Dead letters by endpoint" flush>
            {!dead.data ? <Skeleton lines={4} /> : dead.data.data.length === 0 ? (
              <Empty icon="circle-check" title="No unresolved dead letters"><p>Deliveries that fail permanently appear here, grouped by endpoint and cause.</p></Empty>
            ) : (
              <Table
                label="Dead letters by endpoint and cause"
                rows={[...dead.data.data].sort((a, b) => b.unresolved - a.unresolved).slice(0, 8)}
                keyOf={(row) => `${row.tenant_id} ${row.endpoint_id} ${row.cause}`}
                hrefOf={(row) => links.deadLettersWith({ tenant: row.tenant_id, endpoint: row.endpoint_id, cause: row.cause })}
                columns={[
                  { name: 'Endpoint', cell: (row) => <Plain text={row.url ? hostOf(row.url) : (row.endpoint_id ?? '–')} />, card: 'lead', title: (row) => row.url ?? undefined },
                  { name: 'Tenant', width: '24%', cell: (row) => row.tenant_id, card: 'second' },
                  { name: 'Cause', width: '30%', cell: (row) => causes[row.cause]?.label ?? row.cause, card: 'second push' },
                  { name: 'Dead letters', width: '104px', end: true, cell: (row) => formatCount(row.unresolved), card: 'lead push' },
                ]}
              />
            )}
          </Card>
          <Card title="Endpoints with failures" flush>
            {!endpoints.data ? <Skeleton lines={4} /> : failing.length === 0 ? (
              <Empty icon="circle-check" title="No failed attempts in this time" />
            ) : (
              <Table
                label="Endpoints with failures"
                rows={failing}
                keyOf={(row) => `${row.tenant_id} ${row.endpoint_id}`}
                hrefOf={(row) => links.endpoint(row.tenant_id ?? '', row.endpoint_id ?? '')}
                columns={[
                  { name: 'Endpoint', cell: (row) => <span class="mono">{shortId(row.endpoint_id ?? '–')}</span>, card: 'lead' },
                  { name: 'Tenant', width: '24%', cell: (row) => row.tenant_id ?? '–', card: 'second' },
                  { name: 'Retried', width: '84px', end: true, cell: (row) => formatCount(row.retried), card: 'second push' },
                  { name: 'Dead', width: '72px', end: true, cell: (row) => formatCount(row.dead_lettered), card: 'lead push' },
                ]}
              />
            )}
          </Card>
          {!tenant && (
            <Card title="Busiest tenants" flush>
              {!tenants.data ? <Skeleton lines={4} /> : busiest.length === 0 ? <Empty icon="users" title="No traffic in this time" /> : (
                <Table
                  label="Busiest tenants"
                  rows={busiest}
                  keyOf={(row) => row.tenant_id ?? ''}
                  hrefOf={(row) => links.tenant(row.tenant_id ?? '')}
                  columns={[
                    { name: 'Tenant', cell: (row) => row.tenant_id ?? '–', card: 'lead' },
                    { name: 'Attempts', width: '100px', end: true, cell: (row) => formatCount(row.attempts), card: 'lead push' },
                    { name: 'Delivered', width: '100px', end: true, cell: (row) => formatCount(row.delivered), card: 'second' },
                    { name: 'Success at once', width: '120px', end: true, cell: (row) => formatShare(row.first_attempt_successes, row.delivered + row.dead_lettered), card: 'second push' },
                  ]}
                />
              )}
            </Card>
          )}
          {!tenant && nodes.data && (
            <Card title="Nodes" flush>
              <Table
                label="Nodes"
                rows={nodes.data.data.slice(0, 8)}
                keyOf={(row) => row.id}
                columns={[
                  { name: 'Node', cell: (row) => <Plain text={row.name} />, card: 'lead' },
                  { name: 'Version', width: '90px', cell: (row) => row.version, card: 'second' },
                  { name: 'Buckets', width: '80px', end: true, cell: (row) => formatCount(row.buckets.length), card: 'second push' },
                  { name: 'Heartbeat', width: '110px', end: true, cell: (row) => <span class={row.alive ? '' : 'is-bad'}>{row.alive ? formatAge(parseTime(row.heartbeat_at), now.value) : 'not alive'}</span>, card: 'lead push' },
                ]}
              />
            </Card>
          )}
        </div>
        <ApiFooter path={`/v1/stats?by=hour&since=${sinceText}`} command="postrider stats --by hour" />
      </div>
    </Shell>
  );
}

import { useState } from 'preact/hooks';
import { deadLetterSummary, discardDeadLetters, listDeadLetters, replayDeadLetters, type Cause, type DeadLetter, type DeadLetterGroup } from '../../../api/deadLetters';
import { refresh, useQuery } from '../../../api/query';
import { ApiFooter } from '../../../features/ApiFooter';
import { Confirm } from '../../../features/Confirm';
import { can, me } from '../../../features/me';
import { ProblemBox } from '../../../features/Problem';
import { causes } from '../../../lib/causes';
import { hostOf, shortId } from '../../../lib/ids';
import { countOf, formatCount } from '../../../lib/numbers';
import { choice, choiceOr, text, type Values } from '../../../lib/queryString';
import { Badge, Button, Card, Empty, LinkButton, Plain, Skeleton, Time } from '../../../ui/basic';
import { Table } from '../../../ui/Table';
import { toast } from '../../../ui/toasts';
import { FilterBar, FilterChoice, FilterText } from '../../../features/list/FilterBar';
import { useFilters } from '../../../features/list/filters';
import { links } from '../../links';
import { Shell } from '../../shell/Shell';
import { Pager } from '../../../features/list/Pager';

const causeNames = ['rejected', 'gone', 'exhausted', 'expired', 'blocked', 'endpoint_disabled'] as const;
const deadLettersQuery = { tenant: text, endpoint: text, cause: choice(causeNames), resolved: choiceOr(['false', 'true'], 'false'), since: text, until: text, cursor: text };
type Query = Values<typeof deadLettersQuery>;
const causeChoices = causeNames.map((cause) => [cause, causes[cause]!.label] as const);

type Action = 'replay' | 'discard';

/** What the filter means, in words: the same object goes into the request. */
function inWords(values: Query): string {
  const parts = [
    values.cause && `cause “${causes[values.cause]!.label.toLowerCase()}”`,
    values.endpoint && `endpoint ${shortId(values.endpoint)}`,
    values.tenant && `tenant ${values.tenant}`,
    values.since && `since ${values.since}`,
    values.until && `until ${values.until}`,
  ].filter(Boolean);
  return parts.length > 0 ? `Unresolved dead letters with ${parts.join(', ')}.` : 'All unresolved dead letters of all tenants.';
}

function BulkDialog({ action, values, count, onClose }: { action: Action; values: Query; count: number; onClose: () => void }) {
  const verb = action === 'replay' ? 'Replay' : 'Discard';
  const choiceOf = { endpoint: values.endpoint, cause: values.cause as Cause | undefined, since: values.since, until: values.until };
  const isAll = Object.values(choiceOf).every((value) => !value);
  const wanted = isAll ? { all: true } : choiceOf;
  const tenant = me.value?.tenant_id ?? values.tenant;
  return (
    <Confirm
      title={`${verb} ${countOf(count, 'dead letter')}`}
      action={`${verb} ${countOf(count, 'dead letter')}`}
      isDanger={action === 'discard'}
      reason="required"
      typed={String(count)}
      onClose={onClose}
      run={async (reason) => {
        if (action === 'replay') {
          const made = await replayDeadLetters(tenant, wanted, reason);
          toast(made.length === 0 ? 'Nothing matched any more.' : `${countOf(made.length, 'replay')} started.`);
        } else {
          const done = await discardDeadLetters(tenant, wanted, reason);
          toast(`${countOf(done.discarded, 'dead letter')} discarded.${done.more ? ' More match: repeat it.' : ''}`);
        }
        await refresh(['dead-letters'], ['replays']);
      }}
    >
      <p>{inWords(values)}</p>
      <p class="muted">
        {action === 'replay'
          ? 'Each event is sent again to its endpoint, as a new delivery with the same event ID, at most 50 per second.'
          : 'They count as resolved and are not sent. Their history stays until retention deletes it.'}
      </p>
    </Confirm>
  );
}

function Groups({ groups, values, set }: { groups: DeadLetterGroup[]; values: Query; set: (changes: Partial<Query>) => void }) {
  return (
    <Table
      label="Groups of dead letters"
      rows={groups}
      keyOf={(row) => `${row.tenant_id} ${row.endpoint_id} ${row.cause}`}
      currentKey={`${values.tenant} ${values.endpoint} ${values.cause}`}
      hrefOf={(row) => links.deadLettersWith({ tenant: row.tenant_id, endpoint: row.endpoint_id, cause: row.cause })}
      onOpen={(row) => set({ tenant: row.tenant_id, endpoint: row.endpoint_id ?? undefined, cause: row.cause })}
      columns={[
        { name: 'Endpoint', cell: (row) => <strong><Plain text={row.url ? hostOf(row.url) : (row.endpoint_id ?? '–')} /></strong>, card: 'lead', title: (row) => row.url ?? undefined },
        { name: 'Tenant', width: '20%', cell: (row) => row.tenant_id, card: 'second' },
        { name: 'Cause', width: '26%', cell: (row) => causes[row.cause]?.label ?? row.cause, card: 'second', title: (row) => causes[row.cause]?.text },
        { name: 'Dead letters', width: '120px', end: true, cell: (row) => formatCount(row.unresolved), card: 'lead push' },
      ]}
    />
  );
}

function Rows({ rows, isStale }: { rows: DeadLetter[]; isStale: boolean }) {
  return (
    <Table
      label="Dead letters"
      rows={rows}
      keyOf={(row) => row.id}
      hrefOf={(row) => links.delivery(row.tenant_id, row.id)}
      isStale={isStale}
      columns={[
        { name: 'Event type', cell: (row) => <strong><Plain text={row.event_type ?? row.event_id} /></strong>, card: 'lead' },
        { name: 'Cause', width: '150px', cell: (row) => <Badge state={{ word: causes[row.cause]?.label ?? row.cause, icon: 'mail-x', tone: row.resolved_at ? 'neutral' : 'bad' }} />, card: 'lead push' },
        { name: 'Subject', width: '14%', cell: (row) => (row.subject ? <Plain text={row.subject} /> : <span class="faint">–</span>) },
        { name: 'Endpoint', width: '20%', cell: (row) => <Plain text={hostOf(row.url)} />, card: 'second', title: (row) => row.url ?? undefined },
        { name: 'Last result', width: '130px', cell: (row) => <span class="mono">{row.last_status_code ?? row.last_error ?? '–'}</span>, card: 'second' },
        { name: 'Resolution', width: '110px', cell: (row) => row.resolution ?? <span class="faint">–</span> },
        { name: 'Dead since', width: '120px', end: true, cell: (row) => <Time at={row.dead_at} />, card: 'second push' },
      ]}
    />
  );
}

export function DeadLettersPage() {
  const { values, set, hrefWith, unknown } = useFilters(deadLettersQuery);
  const [dialog, setDialog] = useState<{ action: Action; key: string }>();
  const tenant = me.value?.tenant_id ?? values.tenant;
  const summary = useQuery(['dead-letters', 'summary', tenant], (signal) => deadLetterSummary(tenant, signal), { every: 5000 });
  const { cursor, ...filter } = values;
  const list = useQuery(['dead-letters', 'list', tenant, filter, cursor], (signal) => listDeadLetters({ ...filter, tenant, cause: filter.cause as Cause | undefined }, cursor, signal), { every: cursor ? undefined : 5000, keepPrevious: true });
  const groups = (summary.data?.data ?? []).filter((row) => (!values.endpoint || row.endpoint_id === values.endpoint) && (!values.cause || row.cause === values.cause)).sort((a, b) => b.unresolved - a.unresolved);
  const count = groups.reduce((sum, group) => sum + group.unresolved, 0);
  const filters = [values.tenant, values.endpoint, values.cause, values.resolved === 'true', values.since, values.until].filter(Boolean).length;
  const key = JSON.stringify(filter);
  // The number comes from the groups, which know no times.
  const canCount = !values.since && !values.until && values.resolved === 'false';
  return (
    <Shell
      title="Dead letters"
      crumbs={[{ text: 'Dead letters' }]}
      head={
        <div class="page-head">
          <h1 tabIndex={-1}>Dead letters</h1>
          {summary.data && <span class="muted">{formatCount(summary.data.unresolved)} unresolved</span>}
          <div class="row">
            {can('operate') && canCount && count > 0 && (
              <>
                <Button small kind="primary" icon="undo" onClick={() => setDialog({ action: 'replay', key })}>Replay {formatCount(count)}</Button>
                <Button small icon="trash" onClick={() => setDialog({ action: 'discard', key })}>Discard {formatCount(count)}</Button>
              </>
            )}
          </div>
        </div>
      }
    >
      <div class="stack">
        <FilterBar unknown={unknown} count={filters} onClear={() => set({ tenant: undefined, endpoint: undefined, cause: undefined, resolved: 'false', since: undefined, until: undefined })}>
          {!me.value?.tenant_id && <FilterText label="Tenant" value={values.tenant} onChange={(value, isFinal) => set({ tenant: value }, !isFinal)} />}
          <FilterText label="Endpoint" value={values.endpoint} onChange={(endpoint, isFinal) => set({ endpoint }, !isFinal)} />
          <FilterChoice label="Cause" value={values.cause} choices={causeChoices} onChange={(cause) => set({ cause: cause as Query['cause'] })} />
          <FilterChoice label="State" value={values.resolved} any={null} choices={[['false', 'Unresolved'], ['true', 'Resolved']]} onChange={(resolved) => set({ resolved: (resolved ?? 'false') as Query['resolved'] })} />
        </FilterBar>
        {groups.length > 0 && values.resolved === 'false' && <Card title="By endpoint and cause" flush><Groups groups={groups} values={values} set={set} /></Card>}
        <Card title={values.resolved === 'true' ? 'Resolved' : 'Unresolved'} flush>
          {list.isError && !list.data ? (
            <ProblemBox error={list.error} retry={() => void list.refetch()} />
          ) : !list.data ? (
            <Skeleton lines={8} height={28} />
          ) : list.data.rows.length === 0 ? (
            <Empty icon="circle-check" title={filters > 0 ? 'No dead letter matches these filters' : 'No unresolved dead letters'}>
              <p>A delivery becomes a dead letter when it fails permanently. It stays unresolved until it is replayed or discarded.</p>
              {filters > 0 && <LinkButton href={links.deadLetters}>Clear filters</LinkButton>}
            </Empty>
          ) : (
            <Rows rows={list.data.rows} isStale={list.isPlaceholderData} />
          )}
        </Card>
        <Pager cursor={cursor} next={list.data?.next} hrefWith={(next) => hrefWith({ cursor: next })} />
        <ApiFooter path={tenant ? `/v1/tenants/${tenant}/dead-letters` : '/v1/dead-letters'} command={`postrider dead-letter list${tenant ? ` --tenant ${tenant}` : ''}`} />
      </div>
      {dialog && dialog.key === key && <BulkDialog action={dialog.action} values={values} count={count} onClose={() => setDialog(undefined)} />}
    </Shell>
  );
}

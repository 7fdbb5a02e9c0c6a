import { useLocation, useRoute } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import { refresh, useQuery } from '../../../api/query';
import { cancelReplay, countReplay, createReplay, getReplay, listReplays, type NewReplay, type ReplayCount } from '../../../api/replays';
import { ApiFooter } from '../../../features/ApiFooter';
import { ReplayProgress } from '../../../features/replay/ReplayProgress';
import { Confirm } from '../../../features/Confirm';
import { can } from '../../../features/me';
import { fieldErrors, ProblemBox } from '../../../features/Problem';
import { shortId } from '../../../lib/ids';
import { countOf, formatCount } from '../../../lib/numbers';
import { choiceOr, text } from '../../../lib/queryString';
import { replayState } from '../../../lib/states';
import { formatInput } from '../../../lib/time';
import { Badge, Button, Card, Empty, Fact, Facts, LinkButton, Notice, Plain, Skeleton, Time } from '../../../ui/basic';
import { SelectField, TextField } from '../../../ui/Field';
import { Table } from '../../../ui/Table';
import { toast } from '../../../ui/toasts';
import { useFilters } from '../../../features/list/filters';
import { links } from '../../links';
import { Shell } from '../../shell/Shell';
import { Pager } from '../../../features/list/Pager';

const onlyTexts = { failed: 'Failed: unresolved dead letters', missing: 'Missing: events that match, but have no delivery', all: 'All events that match' } as const;
const newReplayQuery = { only: choiceOr(['failed', 'missing', 'all'], 'failed'), endpoint: text, since: text, until: text, type: text };

function wantedOf(values: { only: string; endpoint?: string; since?: string; until?: string; type?: string }): NewReplay | undefined {
  if (!values.since) return undefined;
  return {
    only: values.only as NewReplay['only'],
    since: values.since,
    ...(values.endpoint ? { endpoint: values.endpoint } : {}),
    ...(values.until ? { until: values.until } : {}),
    ...(values.type ? { event_types: values.type.split(/[\s,]+/) } : {}),
    reason: '',
  };
}

function ReplayDialog({ tenant, wanted, counted, onClose }: { tenant: string; wanted: NewReplay; counted: ReplayCount; onClose: () => void }) {
  const { route } = useLocation();
  const number = `${counted.is_complete ? '' : 'more than '}${formatCount(counted.matched)}`;
  return (
    <Confirm title={`Replay ${number} deliveries`} action={`Replay ${number} deliveries`} reason="required" typed={String(counted.matched)} onClose={onClose} run={async (reason) => {
      const made = await createReplay(tenant, { ...wanted, reason });
      await refresh(['replays']);
      route(links.replay(tenant, made.id));
    }}>
      <p>{onlyTexts[wanted.only]}, since {wanted.since}{wanted.until ? ` until ${wanted.until}` : ''}{wanted.endpoint ? `, endpoint ${shortId(wanted.endpoint)}` : ''}.</p>
      <p class="muted">Each is a new delivery with the same event ID, at most {wanted.rate_per_second ?? 50} per second.</p>
    </Confirm>
  );
}

export function NewReplayPage() {
  const { params } = useRoute();
  const tenant = params['tenant'] ?? '';
  const { values, set } = useFilters(newReplayQuery);
  const [counted, setCounted] = useState<{ key: string; count: ReplayCount }>();
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<string>();
  const [isOpen, setOpen] = useState(false);
  const wanted = wantedOf(values);
  const key = JSON.stringify(wanted);
  useEffect(() => setOpen(false), [key]);
  const count = async () => {
    if (!wanted) return;
    setErrors({});
    setProblem(undefined);
    try {
      setCounted({ key, count: await countReplay(tenant, wanted) });
    } catch (error) {
      setErrors(fieldErrors(error));
      setProblem((error as Error).message);
    }
  };
  const current = counted?.key === key ? counted.count : undefined;
  const setTime = (name: 'since' | 'until') => (event: { currentTarget: HTMLInputElement }) => {
    const value = event.currentTarget.value;
    set({ [name]: value ? new Date(value).toISOString() : undefined }, true);
  };
  return (
    <Shell title="New replay" crumbs={[{ text: 'Tenants', href: links.tenants }, { text: tenant, href: links.tenant(tenant) }, { text: 'Replays', href: links.replays(tenant) }, { text: 'New' }]}>
      <Card>
        <div class="stack form">
          <SelectField label="What" value={values.only} onChange={(event) => set({ only: event.currentTarget.value as 'failed' }, true)}>
            {Object.entries(onlyTexts).map(([name, label]) => <option key={name} value={name}>{label}</option>)}
          </SelectField>
          <div class="form-columns">
            <TextField label="Since (your time)" type="datetime-local" value={formatInput(values.since)} error={errors['since']} onInput={setTime('since')} />
            <TextField label="Until (empty: now)" type="datetime-local" value={formatInput(values.until)} error={errors['until']} onInput={setTime('until')} />
          </div>
          <TextField label="Endpoint (empty: all)" value={values.endpoint ?? ''} error={errors['endpoint']} onInput={(event) => set({ endpoint: event.currentTarget.value || undefined }, true)} />
          <TextField label="Event types (empty: all)" value={values.type ?? ''} error={errors['event_types']} placeholder="invoice.*" onInput={(event) => set({ type: event.currentTarget.value || undefined }, true)} />
          {problem && <p class="form-error" role="alert">{problem}</p>}
          {current && (
            <Notice tone={current.matched > 0 ? 'info' : 'neutral'} icon="undo">
              <span class="grow">{current.matched === 0 ? 'Nothing matches.' : `${current.is_complete ? '' : 'More than '}${countOf(current.matched, 'delivery', 'deliveries')} would be created.`}</span>
              {current.matched > 0 && <Button small kind="primary" onClick={() => setOpen(true)}>Replay…</Button>}
            </Notice>
          )}
          <div class="row"><Button kind={current ? undefined : 'primary'} disabled={!wanted} onClick={() => void count()}>Count</Button></div>
        </div>
      </Card>
      {isOpen && wanted && current && <ReplayDialog tenant={tenant} wanted={wanted} counted={current} onClose={() => setOpen(false)} />}
    </Shell>
  );
}

export function ReplaysPage() {
  const { params } = useRoute();
  const tenant = params['tenant'] ?? '';
  const { values, hrefWith } = useFilters({ cursor: text });
  const list = useQuery(['replays', tenant, values.cursor], (signal) => listReplays(tenant, values.cursor, signal), { every: 3000, keepPrevious: true });
  return (
    <Shell title={`Replays of ${tenant}`} crumbs={[{ text: 'Tenants', href: links.tenants }, { text: tenant, href: links.tenant(tenant) }, { text: 'Replays' }]} head={
      <div class="page-head">
        <h1 tabIndex={-1}>Replays of {tenant}</h1>
        <div class="row">{can('operate') && <LinkButton small kind="primary" icon="plus" href={links.newReplay(tenant, {})}>New replay</LinkButton>}</div>
      </div>
    }>
      <Card flush>
        {list.isError && !list.data ? <ProblemBox error={list.error} retry={() => void list.refetch()} /> : !list.data ? <Skeleton lines={5} height={28} /> : list.data.rows.length === 0 ? (
          <Empty icon="undo" title="No replays yet"><p>A replay sends events again: those that failed, those that were missed, or all in a time range.</p></Empty>
        ) : (
          <Table
            label="Replays"
            rows={list.data.rows}
            keyOf={(row) => row.id}
            hrefOf={(row) => links.replay(tenant, row.id)}
            columns={[
              { name: 'Replay', width: '170px', cell: (row) => <span class="mono">{shortId(row.id)}</span>, card: 'lead' },
              { name: 'Status', width: '130px', cell: (row) => <Badge state={replayState(row.status, row.pending)} />, card: 'lead push' },
              { name: 'Reason', cell: (row) => (row.reason ? <Plain text={row.reason} /> : <span class="faint">–</span>), card: 'second' },
              { name: 'Delivered', width: '100px', end: true, cell: (row) => formatCount(row.delivered) },
              { name: 'Failed', width: '80px', end: true, cell: (row) => formatCount(row.failed) },
              { name: 'Matched', width: '90px', end: true, cell: (row) => formatCount(row.matched), card: 'second push' },
              { name: 'Created', width: '130px', end: true, cell: (row) => <Time at={row.created_at} />, card: 'off' },
            ]}
          />
        )}
      </Card>
      <Pager cursor={values.cursor} next={list.data?.next} hrefWith={(cursor) => hrefWith({ cursor })} />
      <ApiFooter path={`/v1/tenants/${tenant}/replays`} command={`postrider replay list ${tenant}`} />
    </Shell>
  );
}

export function ReplayPage() {
  const { params } = useRoute();
  const tenant = params['tenant'] ?? '';
  const id = params['replay'] ?? '';
  const [isCanceling, setCanceling] = useState(false);
  const found = useQuery(['replay', tenant, id], (signal) => getReplay(tenant, id, signal), { every: 1000 });
  const replay = found.data;
  return (
    <Shell title={`Replay ${shortId(id)}`} crumbs={[{ text: 'Tenants', href: links.tenants }, { text: tenant, href: links.tenant(tenant) }, { text: 'Replays', href: links.replays(tenant) }, { text: shortId(id) }]} head={
      <div class="page-head">
        <h1 tabIndex={-1}>Replay {shortId(id)}</h1>
        {replay && <Badge state={replayState(replay.status, replay.pending)} />}
        <div class="row">
          {replay && can('operate') && (replay.status === 'queued' || replay.status === 'running') && <Button small icon="ban" onClick={() => setCanceling(true)}>Cancel replay</Button>}
        </div>
      </div>
    }>
      {found.isError && !replay ? <ProblemBox error={found.error} /> : !replay ? <Skeleton lines={4} /> : (
        <div class="stack">
          <Card><ReplayProgress replay={replay} /></Card>
          <Card title="Details">
            <Facts>
              <Fact name="What">{replay.kind === 'delivery' ? 'One delivery' : (replay.only && onlyTexts[replay.only]) ?? '–'}</Fact>
              {replay.delivery_id && <Fact name="Delivery"><a href={links.delivery(tenant, replay.delivery_id)}>{shortId(replay.delivery_id)}</a></Fact>}
              {replay.endpoint && <Fact name="Endpoint"><a href={links.endpoint(tenant, replay.endpoint)}>{shortId(replay.endpoint)}</a></Fact>}
              {replay.since && <Fact name="Since"><Time at={replay.since} exact /></Fact>}
              {replay.until && <Fact name="Until"><Time at={replay.until} exact /></Fact>}
              <Fact name="Reason">{replay.reason ? <Plain text={replay.reason} /> : '–'}</Fact>
              <Fact name="Requested by"><span class="mono">{replay.requested_by ?? '–'}</span></Fact>
              <Fact name="Created"><Time at={replay.created_at} exact /></Fact>
              {replay.finished_at && <Fact name="Finished"><Time at={replay.finished_at} exact /></Fact>}
            </Facts>
          </Card>
          <ApiFooter path={`/v1/tenants/${tenant}/replays/${id}`} command={`postrider replay show ${tenant} ${id}`} />
        </div>
      )}
      {isCanceling && (
        <Confirm title="Cancel this replay" action="Cancel replay" isDanger onClose={() => setCanceling(false)} run={async () => {
          await cancelReplay(tenant, id);
          toast('The replay was canceled.');
          await refresh(['replay', tenant, id]);
        }}>
          <p>No further deliveries are created. Those that are queued already are still sent.</p>
        </Confirm>
      )}
    </Shell>
  );
}

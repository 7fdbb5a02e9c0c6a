import { useState } from 'preact/hooks';
import { getBrakes, listNodes, updateBrakes, type Brakes } from '../../../api/cluster';
import { refresh, useQuery } from '../../../api/query';
import { ApiFooter } from '../../../features/ApiFooter';
import { Confirm } from '../../../features/Confirm';
import { can } from '../../../features/me';
import { ProblemBox } from '../../../features/Problem';
import { countOf, formatCount } from '../../../lib/numbers';
import type { State } from '../../../lib/states';
import { Badge, Button, Card, Empty, Fact, Facts, Notice, Plain, Skeleton, Time } from '../../../ui/basic';
import { TextField } from '../../../ui/Field';
import { Table } from '../../../ui/Table';
import { toast } from '../../../ui/toasts';
import { ListCard } from '../../../features/list/ListCard';
import { Shell } from '../../shell/Shell';

const alive: State = { word: 'Alive', icon: 'circle-check', tone: 'good' };
const lost: State = { word: 'No heartbeat', icon: 'octagon-alert', tone: 'bad' };

function rateOf(text: string): number | null {
  return text.trim() === '' ? null : Number(text);
}

/** Limits for the whole cluster. An empty field is no limit. */
function RatesDialog({ brakes, onClose }: { brakes: Brakes; onClose: () => void }) {
  const [retry, setRetry] = useState(brakes.retry_rate_per_second?.toString() ?? '');
  const [drain, setDrain] = useState(brakes.drain_rate_per_second?.toString() ?? '');
  const isNumber = [retry, drain].every((each) => each.trim() === '' || Number(each) > 0);
  return (
    <Confirm title="Limit rates" action="Set limits" reason="required" isReady={isNumber} onClose={onClose} run={async (reason) => {
      await updateBrakes({ retry_rate_per_second: rateOf(retry), drain_rate_per_second: rateOf(drain), reason });
      toast('The limits are set.');
      await refresh(['brakes']);
    }}>
      <p>The limits are for all nodes together. An empty field is no limit.</p>
      <TextField label="Retries per second" value={retry} hint="First attempts are not limited. Endpoints with strict ordering are exempt." error={isNumber ? undefined : 'Enter numbers above 0, or nothing.'} onInput={(event) => setRetry(event.currentTarget.value)} />
      <TextField label="Attempts per second" value={drain} onInput={(event) => setDrain(event.currentTarget.value)} />
    </Confirm>
  );
}

function rateText(rate: number | null): string {
  return rate === null ? 'no limit' : `${formatCount(rate)} per second`;
}

function BrakesCard({ brakes }: { brakes: Brakes }) {
  const [dialog, setDialog] = useState<'pause' | 'release' | 'rates'>();
  const close = () => setDialog(undefined);
  const pause = async (pause_all: boolean, reason: string) => {
    await updateBrakes({ pause_all, reason });
    toast(pause_all ? 'All deliveries are paused.' : 'Deliveries continue.');
    await refresh(['brakes']);
  };
  const actions = can('operate') && (
    <>
      <Button small icon="gauge" onClick={() => setDialog('rates')}>Limit rates</Button>
      {brakes.pause_all ? (
        <Button small kind="primary" icon="circle-play" onClick={() => setDialog('release')}>Release</Button>
      ) : (
        <Button small icon="octagon-pause" onClick={() => setDialog('pause')}>Pause all</Button>
      )}
    </>
  );
  return (
    <Card title="Brakes" actions={actions}>
      <div class="stack">
        {brakes.pause_all && <Notice tone="pause" icon="octagon-pause">All deliveries are paused. Events are accepted, and queue until the brake is released.</Notice>}
        <Facts>
          <Fact name="Deliveries">{brakes.pause_all ? 'paused' : 'running'}</Fact>
          <Fact name="Retries">{rateText(brakes.retry_rate_per_second)}</Fact>
          <Fact name="All attempts">{rateText(brakes.drain_rate_per_second)}</Fact>
          {brakes.changed_at && <Fact name="Changed"><Time at={brakes.changed_at} exact />{brakes.changed_by && <> by <span class="mono break"><Plain text={brakes.changed_by} /></span></>}</Fact>}
          {brakes.reason && <Fact name="Reason"><span class="break"><Plain text={brakes.reason} /></span></Fact>}
        </Facts>
      </div>
      {dialog === 'rates' && <RatesDialog brakes={brakes} onClose={close} />}
      {dialog === 'pause' && (
        <Confirm title="Pause all deliveries" action="Pause all" isDanger reason="required" typed="pause all" onClose={close} run={(reason) => pause(true, reason)}>
          <p>No node starts an attempt for any tenant until the brake is released. Events are still accepted, and queue.</p>
        </Confirm>
      )}
      {dialog === 'release' && (
        <Confirm title="Release the brake" action="Release" reason="required" onClose={close} run={(reason) => pause(false, reason)}>
          <p>Everything that queued is sent now. If it is much, limit the attempts per second first.</p>
        </Confirm>
      )}
    </Card>
  );
}

export function ClusterPage() {
  const nodes = useQuery(['nodes'], (signal) => listNodes(signal), { every: 5000 });
  const brakes = useQuery(['brakes'], (signal) => getBrakes(signal), { every: 5000 });
  const versions = new Set(nodes.data?.data.filter((node) => node.alive).map((node) => node.version));
  const free = nodes.data?.free_buckets.length ?? 0;
  return (
    <Shell title="Cluster" crumbs={[{ text: 'Cluster' }]}>
      <div class="stack">
        {free > 0 && <Notice tone="warn" icon="triangle-alert">{countOf(free, 'bucket')} without a node: their deliveries wait. A live node takes them over within seconds; if this lasts, start one.</Notice>}
        {versions.size > 1 && <Notice tone="info" icon="server">Several versions run: {[...versions].join(', ')}. That is normal during an upgrade only.</Notice>}
        <ListCard
          title="Nodes"
          list={nodes}
          isEmpty={(data) => data.data.length === 0}
          empty={<Empty icon="server" title="No nodes"><p>A node is one process of <code>postrider serve</code>. It appears here with its first heartbeat.</p></Empty>}
        >
          {(data) => (
            <Table
              label="Nodes"
              rows={data.data}
              keyOf={(row) => row.id}
              columns={[
                { name: 'Node', cell: (row) => <strong><Plain text={row.name} /></strong>, card: 'lead', title: (row) => row.id },
                { name: 'State', width: '160px', cell: (row) => <Badge state={row.alive ? alive : lost} />, card: 'lead push' },
                { name: 'Version', width: '110px', cell: (row) => row.version, card: 'second' },
                { name: 'Delivers', width: '90px', cell: (row) => (row.delivers ? 'yes' : 'no'), card: 'off' },
                { name: 'Buckets', width: '90px', end: true, cell: (row) => formatCount(row.buckets.length), card: 'off' },
                { name: 'Heartbeat', width: '130px', end: true, cell: (row) => <Time at={row.heartbeat_at} />, card: 'second push' },
                { name: 'Started', width: '150px', end: true, cell: (row) => <Time at={row.started_at} />, card: 'off' },
              ]}
            />
          )}
        </ListCard>
        {brakes.isError && !brakes.data ? <ProblemBox error={brakes.error} retry={() => void brakes.refetch()} /> : brakes.data ? <BrakesCard brakes={brakes.data} /> : <Skeleton lines={4} />}
        <ApiFooter path="/v1/nodes" command="postrider node list" />
      </div>
    </Shell>
  );
}

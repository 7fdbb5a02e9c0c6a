import { useState } from 'preact/hooks';
import { getDelivery, type DeliveryDetail } from '../../api/deliveries';
import { getEndpoint } from '../../api/endpoints';
import { getEvent } from '../../api/events';
import { useQuery } from '../../api/query';
import { ApiFooter } from '../ApiFooter';
import { DeliveryActions } from './DeliveryActions';
import { Timeline } from './Timeline';
import { summaryOf, verdictOf } from './verdict';
import { me } from '../me';
import { ProblemBox } from '../Problem';
import { hostOf, shortId } from '../../lib/ids';
import { deliveryState, endpointChips } from '../../lib/states';
import { Badge, Button, Card, Copy, copyText, Empty, Fact, Facts, Plain, Skeleton, Time } from '../../ui/basic';
import { Code, Json } from '../../ui/Code';
import { Icon, type IconName } from '../../ui/Icon';
import { now, zone } from '../../ui/settings';
import type { ObjectLinks } from '../links';
import './delivery.css';

const verdictIcons: Record<string, IconName> = { good: 'circle-check', bad: 'mail-x', warn: 'rotate-cw', info: 'loader-circle', neutral: 'circle-dashed' };

function isOver(delivery: DeliveryDetail): boolean {
  return ['delivered', 'dead_letter', 'canceled'].includes(delivery.status);
}

function Head({ delivery, isPanel }: { delivery: DeliveryDetail; isPanel?: boolean }) {
  const Title = isPanel ? 'h2' : 'h1';
  const tries = delivery.status === 'retrying' ? `(${delivery.attempts} of ${delivery.max_attempts})` : undefined;
  return (
    <div class="stack tight">
      <div class="row">
        <Title tabIndex={-1}>
          <Plain text={delivery.event_type ?? 'Delivery'} />
        </Title>
        <Badge state={deliveryState(delivery.status)} more={tries} />
      </div>
      <div class="row muted">
        <span>
          to <strong class="break"><Plain text={hostOf(delivery.url)} /></strong>
        </span>
        {delivery.subject && (
          <span class="break">
            about <strong><Plain text={delivery.subject} /></strong>
          </span>
        )}
        <Copy text={delivery.id} label="delivery ID"><span class="mono">{shortId(delivery.id)}</span></Copy>
        <Time at={delivery.created_at} />
      </div>
    </div>
  );
}

function VerdictCard({ delivery, links }: { delivery: DeliveryDetail; links: ObjectLinks }) {
  const verdict = verdictOf(delivery, now.value, zone.value);
  return (
    <section class={`verdict is-${verdict.tone}`} aria-label="Verdict">
      <Icon name={verdictIcons[verdict.tone]!} />
      <div class="grow">
        <h2>{verdict.title}</h2>
        {verdict.lines.map((line, index) => (
          <p key={index} class={index === 0 ? 'break' : 'muted break'}>
            <Plain text={line} />
          </p>
        ))}
        <div class="row">
          <DeliveryActions delivery={delivery} hrefOfReplay={(id) => links.delivery(delivery.tenant_id, id)} />
          <Button small kind="quiet" icon="copy" onClick={() => void copyText(summaryOf(delivery, location.origin + links.delivery(delivery.tenant_id, delivery.id)), 'Summary copied')}>
            Copy summary
          </Button>
        </div>
      </div>
    </section>
  );
}

function EventData({ delivery }: { delivery: DeliveryDetail }) {
  const event = useQuery(['event', delivery.tenant_id, delivery.event_id], (signal) => getEvent(delivery.tenant_id, delivery.event_id, signal));
  if (event.isError) return <ProblemBox error={event.error} retry={() => void event.refetch()} />;
  if (!event.data) return <Skeleton lines={4} />;
  if (event.data.dataText === undefined)
    return (
      <Empty icon="key-round" title="Hidden">
        <p>{me.value?.payloads === false ? 'This key does not see payloads.' : 'This event has its data in several versions.'}</p>
      </Empty>
    );
  if (event.data.dataText === 'null') return <Empty icon="trash" title="Erased"><p>The payload of this event was erased.</p></Empty>;
  return <Json text={event.data.dataText} label="Event data" />;
}

function Response({ delivery }: { delivery: DeliveryDetail }) {
  const last = [...delivery.timeline].reverse().find((attempt) => attempt.status_code || attempt.error);
  if (!last) return <Empty icon="clock" title="No response yet"><p>Nothing was sent so far.</p></Empty>;
  if (last.response_preview)
    return (
      <div class="stack tight">
        <p class="muted">
          {last.status_code} · attempt {last.attempt} · the first KiB, secrets redacted
        </p>
        <Code text={last.response_preview} label="Response body" />
      </div>
    );
  if (me.value?.payloads === false) return <Empty icon="key-round" title="Hidden"><p>This key does not see payloads.</p></Empty>;
  return (
    <Empty icon="file" title={last.status_code ? `${last.status_code} with an empty body` : 'No response'}>
      {last.error_detail && <p><Plain text={last.error_detail} /></p>}
    </Empty>
  );
}

function Related({ delivery, links }: { delivery: DeliveryDetail; links: ObjectLinks }) {
  const endpoint = useQuery(['endpoint', delivery.tenant_id, delivery.endpoint_id], (signal) => getEndpoint(delivery.tenant_id, delivery.endpoint_id, signal));
  return (
    <Facts>
      <Fact name="Event"><a class="mono" href={links.event(delivery.tenant_id, delivery.event_id)}>{shortId(delivery.event_id)}</a></Fact>
      <Fact name="Endpoint">
        <span class="row">
          <a class="mono" href={links.endpoint(delivery.tenant_id, delivery.endpoint_id)}>{shortId(delivery.endpoint_id)}</a>
          {endpoint.data && endpointChips(endpoint.data.value).map((state) => <Badge key={state.word} state={state} />)}
        </span>
      </Fact>
      <Fact name="URL"><span class="mono break"><Plain text={delivery.url ?? '–'} /></span></Fact>
      {links.tenant && <Fact name="Tenant"><a href={links.tenant(delivery.tenant_id)}>{delivery.tenant_id}</a></Fact>}
      <Fact name="Created"><Time at={delivery.created_at} exact /></Fact>
      {delivery.next_attempt_at && <Fact name="Next attempt due"><Time at={delivery.next_attempt_at} exact /></Fact>}
      {delivery.next_probe_at && <Fact name="Next probe due"><Time at={delivery.next_probe_at} exact /></Fact>}
      {delivery.give_up_at && <Fact name="Expires"><Time at={delivery.give_up_at} exact /></Fact>}
      {delivery.replay_id && <Fact name="Replay"><a class="mono" href={links.replay(delivery.tenant_id, delivery.replay_id)}>{shortId(delivery.replay_id)}</a></Fact>}
    </Facts>
  );
}

const tabs = [['event', 'Event'], ['response', 'Response'], ['related', 'Details']] as const;

/** One delivery: what happened, why, and what to do. In the side panel of the list and on its own page. */
export function DeliveryView({ tenant, id, links, isPanel }: { tenant: string; id: string; links: ObjectLinks; isPanel?: boolean }) {
  const [tab, setTab] = useState<(typeof tabs)[number][0]>('event');
  const found = useQuery(['delivery', id], (signal) => getDelivery(tenant, id, signal), { every: 2000 });
  const delivery = found.data;
  const endpoint = useQuery(['endpoint', tenant, delivery?.endpoint_id], (signal) => getEndpoint(tenant, delivery!.endpoint_id, signal), { enabled: !!delivery });
  if (found.isError && !delivery) return <ProblemBox error={found.error} retry={() => void found.refetch()} />;
  if (!delivery) return <Skeleton lines={8} height={28} />;
  return (
    <div class="stack">
      <Head delivery={delivery} isPanel={isPanel} />
      <VerdictCard delivery={delivery} links={links} />
      <Card title="Timeline" flush>
        {delivery.timeline.length > 0 ? (
          <Timeline key={delivery.timeline.length} attempts={delivery.timeline} timeoutMs={endpoint.data?.value.timeout_ms ?? undefined} />
        ) : (
          <Empty icon="clock" title="No attempts yet">{!isOver(delivery) && <p>The first one appears here by itself.</p>}</Empty>
        )}
      </Card>
      <div>
        <div class="tabs" role="tablist">
          {tabs.map(([name, text]) => (
            <button key={name} type="button" role="tab" class="tab" aria-selected={tab === name} onClick={() => setTab(name)}>
              {text}
            </button>
          ))}
        </div>
        <div class="tab-body" role="tabpanel">
          {tab === 'event' && <EventData delivery={delivery} />}
          {tab === 'response' && <Response delivery={delivery} />}
          {tab === 'related' && <Related delivery={delivery} links={links} />}
        </div>
      </div>
      <ApiFooter
        path={`/v1/deliveries/${id}`}
        command={`postrider delivery show ${id}`}
        sql={`select attempt, outcome, status_code, error_detail from postrider.webhook_delivery_attempts where delivery_id = postrider.delivery_id('${id}') order by started_at;`}
      />
    </div>
  );
}

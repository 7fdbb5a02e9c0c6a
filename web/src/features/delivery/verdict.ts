import type { Schemas } from '../../api/client';
import { causes, explainError, waiting } from '../../lib/causes';
import { formatAge, formatCountdown, formatTime, longSpan, parseTime, type Zone } from '../../lib/time';

export type DeliveryDetail = Schemas['DeliveryDetail'];

export interface Verdict {
  tone: 'good' | 'bad' | 'warn' | 'neutral' | 'info';
  title: string;
  lines: string[];
}

function lastError(delivery: DeliveryDetail): string[] {
  const explanation = explainError(delivery.last_error, delivery.last_status_code);
  if (!explanation) return [];
  const exact = delivery.last_error_detail;
  const happened = exact && !delivery.last_status_code ? `${capitalized(exact)}.` : explanation.happened;
  return [`${happened} ${explanation.means}`.trim(), explanation.advice].filter(Boolean);
}

function capitalized(text: string): string {
  const trimmed = text.replace(/\.$/, '');
  return trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
}

function waits(delivery: DeliveryDetail, now: number): string {
  const reason = delivery.waiting_for;
  const known = reason ? waiting[reason] : undefined;
  if (known && reason === 'breaker') return `${known} ${nextProbe(delivery, now)}`.trim();
  if (known && reason !== 'schedule') return known;
  if (!delivery.next_attempt_at) return 'It waits for a node.';
  const left = parseTime(delivery.next_attempt_at) - now;
  return left > 0 ? `The next attempt is due in ${formatCountdown(left)}.` : 'It is due, and waits for a node.';
}

function nextProbe(delivery: DeliveryDetail, now: number): string {
  if (!delivery.next_probe_at) return '';
  const left = parseTime(delivery.next_probe_at) - now;
  return left > 0 ? `The next probe is due in ${formatCountdown(left)}.` : 'A probe is due.';
}

/** What happened to a delivery, in sentences. */
export function verdictOf(delivery: DeliveryDetail, now: number, zone: Zone): Verdict {
  const tries = `${delivery.attempts} of ${delivery.max_attempts} attempts`;
  switch (delivery.status) {
    case 'delivered': {
      const took = delivery.delivered_at ? parseTime(delivery.delivered_at) - parseTime(delivery.created_at) : 0;
      const first = delivery.attempts === 1 ? 'at the first attempt' : `at attempt ${delivery.attempts}`;
      return {
        tone: 'good',
        title: `Delivered ${first}, ${longSpan(took)} after it was created`,
        lines: [`The receiver responded ${delivery.last_status_code ?? 'with success'}.`],
      };
    }
    case 'dead_letter': {
      const dead = delivery.dead_letter;
      const cause = dead ? causes[dead.cause] : undefined;
      const lines = lastError(delivery);
      if (cause) lines.push(cause.text);
      if (dead?.resolved_at)
        lines.push(`${dead.resolution === 'discarded' ? 'It was discarded' : 'It was replayed'} ${formatAge(parseTime(dead.resolved_at), now)}.`);
      return {
        tone: dead?.resolved_at ? 'neutral' : 'bad',
        title: `Dead letter: ${(cause?.label ?? 'failed').toLowerCase()} after ${tries}`,
        lines,
      };
    }
    case 'retrying':
      return { tone: 'warn', title: `Failed ${delivery.attempts === 1 ? 'once' : `${delivery.attempts} times`}, will be retried`, lines: [waits(delivery, now), ...lastError(delivery)] };
    case 'processing':
      return { tone: 'info', title: `Attempt ${delivery.attempts + 1} is in flight`, lines: ['The request was sent, or is being sent.'] };
    case 'canceled':
      return { tone: 'neutral', title: 'Canceled', lines: [delivery.last_attempt_at ? `The last attempt was at ${formatTime(parseTime(delivery.last_attempt_at), zone, now)}.` : 'It was never sent.'] };
    default:
      return { tone: 'neutral', title: 'Waits for its first attempt', lines: [waits(delivery, now)] };
  }
}

/** For a message to somebody: IDs, times in UTC, cause, address. */
export function summaryOf(delivery: DeliveryDetail, address: string): string {
  const verdict = verdictOf(delivery, Date.now(), 'utc');
  const lines = [
    `${delivery.event_type ?? 'Event'}${delivery.subject ? ` about ${delivery.subject}` : ''}: ${verdict.title}`,
    ...verdict.lines,
    '',
    `Delivery ${delivery.id}`,
    `Event    ${delivery.event_id}`,
    `Endpoint ${delivery.endpoint_id} ${delivery.url ?? ''}`.trim(),
    `Created  ${delivery.created_at}`,
  ];
  for (const attempt of delivery.timeline.slice(-5))
    lines.push(`${attempt.probe ? `Probe ${attempt.probe} of attempt` : 'Attempt'} ${attempt.attempt} ${attempt.started_at}: ${attempt.status_code ?? attempt.error ?? attempt.outcome}`);
  return [...lines, address].join('\n');
}

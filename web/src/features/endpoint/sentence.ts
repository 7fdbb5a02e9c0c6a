import type { Endpoint } from '../../api/endpoints';
import { formatCapped } from '../../lib/numbers';
import { formatAge, formatTime, parseTime, type Zone } from '../../lib/time';

/** How an endpoint is doing, in sentences: what its owner has to know, the most important first. */
export function endpointSentences(endpoint: Endpoint, now: number, zone: Zone): string[] {
  const lines: string[] = [];
  const at = (text: string) => formatTime(parseTime(text), zone, now);
  const age = (text: string) => formatAge(parseTime(text), now);
  const by = { customer: 'by the customer', operator: 'by an operator', postrider: 'by postrider' }[endpoint.status_by] ?? '';
  if (endpoint.status === 'disabled')
    lines.push(`Disabled ${by} ${age(endpoint.status_since)}. Nothing is queued for it since ${at(endpoint.status_since)}.`);
  if (endpoint.status === 'paused') lines.push(`Paused ${by} ${age(endpoint.status_since)}. Events queue until it is resumed.`);
  if (endpoint.status !== 'active' && endpoint.status_reason) lines.push(`Reason: ${endpoint.status_reason}`);
  if (endpoint.held_reason) lines.push(`Held: ${endpoint.held_reason}`);
  if (endpoint.breaker === 'open')
    lines.push(`The breaker is open: only single probes are sent until one succeeds.${endpoint.last_probe_at ? ` The last probe failed ${age(endpoint.last_probe_at)}${endpoint.last_probe_error ? `: ${endpoint.last_probe_error}` : ''}.` : ''}`);
  if (endpoint.health !== 'healthy' && endpoint.failing_since)
    lines.push(`Failing since ${at(endpoint.failing_since)}${endpoint.last_success_at ? `; the last success was ${age(endpoint.last_success_at)}` : '; it never succeeded'}.`);
  if (endpoint.pending > 0)
    lines.push(`${formatCapped(endpoint.pending, endpoint.pending_is_capped)} ${endpoint.pending === 1 ? 'delivery waits' : 'deliveries wait'}${endpoint.oldest_pending_at ? `, the oldest since ${age(endpoint.oldest_pending_at).replace(' ago', '')}` : ''}.`);
  if (lines.length === 0)
    lines.push(endpoint.last_success_at ? `All is well: the last delivery succeeded ${age(endpoint.last_success_at)}.` : 'Nothing was sent to it yet.');
  return lines;
}

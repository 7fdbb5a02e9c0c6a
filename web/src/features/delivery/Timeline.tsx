import { useState } from 'preact/hooks';
import type { Schemas } from '../../api/client';
import { explainError } from '../../lib/causes';
import { deliveryState } from '../../lib/states';
import { formatMicroseconds, longSpan, parseTime } from '../../lib/time';
import { formatBytes } from '../../lib/numbers';
import { Badge, Button, Fact, Facts, Plain, Time } from '../../ui/basic';
import { Icon } from '../../ui/Icon';
import { PhaseList, Phases } from '../../ui/Phases';

type Attempt = Schemas['Attempt'];
const foldedFrom = 12;

function resultOf(attempt: Attempt): string {
  if (attempt.attempt === 0) return 'ended without a request';
  if (attempt.status_code) return String(attempt.status_code);
  return attempt.error ?? attempt.outcome;
}

function numberOf(attempt: Attempt): string {
  if (attempt.attempt === 0) return '–';
  return attempt.probe ? `probe ${attempt.probe}` : `#${attempt.attempt}`;
}

function Exchange({ attempt }: { attempt: Attempt }) {
  const response = attempt.response;
  return (
    <>
      {attempt.url && <Fact name="URL"><span class="mono break"><Plain text={attempt.url} /></span></Fact>}
      {attempt.bytes_sent !== null && (
        <Fact name="Sent">
          {formatBytes(attempt.bytes_sent)}
          {attempt.is_resent && ', twice: the reused connection was closed'}
        </Fact>
      )}
      {response && response.bytes !== null && (
        <Fact name="Received">
          {formatBytes(response.bytes)} <Plain text={response.content_type ?? ''} />
        </Fact>
      )}
      {Object.entries(response?.headers ?? {}).map(([name, value]) => (
        <Fact key={name} name={name}><span class="mono break"><Plain text={value} /></span></Fact>
      ))}
    </>
  );
}

function AttemptRow({ attempt, scaleUs, limitUs, isFirstOpen }: { attempt: Attempt; scaleUs: number; limitUs?: number; isFirstOpen: boolean }) {
  const [isOpen, setOpen] = useState(isFirstOpen);
  const explanation = explainError(attempt.error, attempt.status_code);
  const total = attempt.phases.total_us;
  return (
    <li class="attempt">
      <button type="button" class="attempt-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class={isOpen ? 'attempt-fold is-open' : 'attempt-fold'}>
          <Icon name="chevron-right" />
        </span>
        <span class="attempt-number number">{numberOf(attempt)}</span>
        <Badge state={deliveryState(attempt.outcome)} />
        <strong class="mono attempt-result">{resultOf(attempt)}</strong>
        <span class="attempt-bar">{total > 0 && <Phases phases={attempt.phases} scaleUs={scaleUs} limitUs={limitUs} />}</span>
        <span class="attempt-total number">{total > 0 ? formatMicroseconds(total) : ''}</span>
        <span class="attempt-time muted">
          <Time at={attempt.started_at} exact />
        </span>
      </button>
      {isOpen && (
        <div class="attempt-body stack tight">
          {total > 0 && <PhaseList phases={attempt.phases} connectionReused={attempt.connection_reused} />}
          {attempt.error_detail && (
            <p class="break">
              <Plain text={attempt.error_detail} />
            </p>
          )}
          {explanation && attempt.outcome !== 'delivered' && (
            <p class="muted">
              {explanation.means} {explanation.advice}
            </p>
          )}
          <Facts>
            <Exchange attempt={attempt} />
            {attempt.kind === 'probe' && <Fact name="Kind">probe</Fact>}
            {attempt.address && <Fact name="Address"><span class="mono">{attempt.address}</span></Fact>}
            {attempt.node && <Fact name="Node"><span class="mono">{attempt.node}</span></Fact>}
            {attempt.next_attempt_at && <Fact name="Next attempt due"><Time at={attempt.next_attempt_at} exact /></Fact>}
          </Facts>
        </div>
      )}
    </li>
  );
}

/** All attempts, the first on top, on one scale. Only the newest is open; the middle of a long one is folded. */
export function Timeline({ attempts, timeoutMs }: { attempts: Attempt[]; timeoutMs?: number }) {
  const [isAll, setAll] = useState(false);
  const limitUs = timeoutMs ? timeoutMs * 1000 : undefined;
  const scaleUs = Math.max(1, ...attempts.map((attempt) => attempt.phases.total_us));
  const hidden = !isAll && attempts.length > foldedFrom ? attempts.length - 6 : 0;
  const shown = hidden ? [...attempts.slice(0, 3), ...attempts.slice(-3)] : attempts;
  return (
    <ol class="timeline">
      {shown.map((attempt, index) => {
        const before = shown[index - 1];
        const isGap = hidden > 0 && index === 3;
        const waited = before && !isGap ? parseTime(attempt.started_at) - parseTime(before.started_at) - before.phases.total_us / 1000 : 0;
        return (
          <>
            {isGap && (
              <li class="timeline-gap">
                <Button small kind="quiet" onClick={() => setAll(true)}>
                  Show {hidden} more attempts
                </Button>
              </li>
            )}
            {waited > 1000 && <li class="timeline-gap">waited {longSpan(waited)}</li>}
            <AttemptRow
              key={`${attempt.attempt} ${attempt.started_at}`}
              attempt={attempt}
              scaleUs={scaleUs}
              limitUs={limitUs}
              isFirstOpen={index === shown.length - 1}
            />
          </>
        );
      })}
    </ol>
  );
}

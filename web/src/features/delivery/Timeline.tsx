import { useState } from 'preact/hooks';
import type { Schemas } from '../../api/client';
import { explainError } from '../../lib/causes';
import { deliveryState } from '../../lib/states';
import { formatMicroseconds, longSpan, parseTime } from '../../lib/time';
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
        <span class="attempt-number number">{attempt.attempt === 0 ? '–' : `#${attempt.attempt}`}</span>
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
          {total > 0 && <PhaseList phases={attempt.phases} />}
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

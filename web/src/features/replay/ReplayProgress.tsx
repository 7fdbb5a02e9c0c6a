import type { Replay } from '../../api/replays';
import { formatCount } from '../../lib/numbers';
import { longSpan } from '../../lib/time';

/** How far a replay is: a bar, and the same as text. */
export function ReplayProgress({ replay }: { replay: Replay }) {
  const total = Math.max(replay.matched, replay.queued, 1);
  const parts = [['delivered', replay.delivered], ['dead', replay.failed], ['canceled', replay.canceled], ['retried', replay.pending]] as const;
  let x = 0;
  const left = replay.status === 'running' && replay.matched > replay.queued ? ((replay.matched - replay.queued) / replay.rate_per_second!) * 1000 : 0;
  return (
    <div class="stack tight">
      <svg class="progress" viewBox="0 0 1000 12" preserveAspectRatio="none" role="img" aria-label={`${formatCount(replay.delivered)} of ${formatCount(replay.matched)} delivered`}>
        <rect class="track" width="1000" height="12" />
        {parts.map(([name, value]) => {
          const width = (value / total) * 1000;
          const bar = <rect key={name} class={`bar-${name}`} x={x} width={width} height="12" />;
          x += width;
          return bar;
        })}
      </svg>
      <div class="legend" aria-live="polite">
        <span class="swatch-delivered">{formatCount(replay.delivered)} delivered</span>
        <span class="swatch-dead">{formatCount(replay.failed)} failed</span>
        <span class="swatch-retried">{formatCount(replay.pending)} pending</span>
        {replay.canceled > 0 && <span class="swatch-canceled">{formatCount(replay.canceled)} canceled</span>}
        <em>of {formatCount(replay.matched)}{replay.is_counted ? '' : ' so far'}</em>
        {left > 0 && <em>about {longSpan(left)} until all are queued</em>}
      </div>
    </div>
  );
}

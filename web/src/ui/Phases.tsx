import { isReused, segmentsOf, type PhaseTimes } from '../lib/phases';
import { formatMicroseconds } from '../lib/time';

/** One bar on the scale 0…`scaleUs`, with a mark at the time limit. */
export function Phases({ phases, scaleUs, limitUs }: { phases: PhaseTimes; scaleUs: number; limitUs?: number }) {
  const segments = segmentsOf(phases);
  const scale = 1000 / Math.max(1, scaleUs);
  let x = 0;
  return (
    <svg class="phases" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="track" x="0" y="0" width="1000" height="10" />
      {segments.map((segment) => {
        const width = segment.us * scale;
        const bar = <rect key={segment.name} class={`phase-${segment.name}`} x={x} y="0" width={Math.max(width - (width > 4 ? 1 : 0), 0.8)} height="10" />;
        x += width;
        return bar;
      })}
      {limitUs !== undefined && limitUs <= scaleUs && (
        <line class="limit" x1={Math.min(999, limitUs * scale)} x2={Math.min(999, limitUs * scale)} y1="0" y2="10" vector-effect="non-scaling-stroke" />
      )}
    </svg>
  );
}

export function PhaseList({ phases, connectionReused }: { phases: PhaseTimes; connectionReused?: boolean | null }) {
  return (
    <div class="phase-legend">
      {isReused(phases, connectionReused) && <em>reused connection</em>}
      {segmentsOf(phases).map((segment) => (
        <span key={segment.name} class={`is-${segment.name}`}>
          {segment.label} {formatMicroseconds(segment.us)}
        </span>
      ))}
    </div>
  );
}

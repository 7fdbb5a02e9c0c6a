import { useState } from 'preact/hooks';
import { formatCount } from '../lib/numbers';

export interface Bar {
  label: string;
  axis: string;
  parts: { name: string; class: string; value: number }[];
}

/** Stacked bars in SVG. Arrow keys walk them; a table with the numbers is there for screen readers. */
export function Bars({ bars, label, onPick }: { bars: Bar[]; label: string; onPick?: (index: number) => void }) {
  const [current, setCurrent] = useState<number>();
  const total = (bar: Bar) => bar.parts.reduce((sum, part) => sum + part.value, 0);
  const top = Math.max(1, ...bars.map(total));
  const width = 100 / Math.max(1, bars.length);
  const shown = current === undefined ? undefined : bars[current];
  const walk = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (event.key === 'Enter' && current !== undefined) onPick?.(current);
    if (!step) return;
    event.preventDefault();
    setCurrent(Math.min(bars.length - 1, Math.max(0, (current ?? (step > 0 ? -1 : bars.length)) + step)));
  };
  return (
    <figure class="bars">
      <span class="scale number">{formatCount(top)}</span>
      <svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label={label} tabIndex={0} onKeyDown={walk} onMouseLeave={() => setCurrent(undefined)}>
        {[0, 50, 100].map((y) => (
          <line key={y} class="grid" x1="0" x2="100" y1={y} y2={y} vector-effect="non-scaling-stroke" />
        ))}
        {bars.map((bar, index) => {
          let bottom = 100;
          return (
            <g key={index} onMouseEnter={() => setCurrent(index)} onClick={() => onPick?.(index)}>
              {bar.parts.map((part) => {
                const height = (part.value / top) * 98;
                bottom -= height;
                return <rect key={part.name} class={`bar-${part.class}`} x={index * width + width * 0.12} width={width * 0.76} y={bottom} height={height} />;
              })}
              <rect class={index === current ? 'bar-hit is-current' : 'bar-hit'} x={index * width} width={width} y="0" height="100" />
            </g>
          );
        })}
      </svg>
      <div class="axis" aria-hidden="true">
        {shown ? (
          <span class="grow">
            <strong>{shown.label}</strong>{' '}
            {shown.parts.map((part) => `${part.name} ${formatCount(part.value)}`).join(' · ')}
          </span>
        ) : (
          axisLabels(bars).map((text, index) => <span key={index}>{text}</span>)
        )}
      </div>
      <table class="visually-hidden">
        <caption>{label}</caption>
        <tbody>
          {bars.map((bar, index) => (
            <tr key={index}>
              <th scope="row">{bar.label}</th>
              {bar.parts.map((part) => (
                <td key={part.name}>
                  {part.name} {formatCount(part.value)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}

function axisLabels(bars: Bar[]): string[] {
  if (bars.length === 0) return [];
  const count = Math.min(6, bars.length);
  return Array.from({ length: count }, (_, index) => bars[Math.round((index * (bars.length - 1)) / Math.max(1, count - 1))]!.axis);
}

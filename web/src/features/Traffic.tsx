import type { Stats } from '../api/stats';
import { formatHour, formatTime, parseTime } from '../lib/time';
import { Bars, type Bar } from '../ui/Bars';
import { now, zone } from '../ui/settings';

export function sum(rows: Stats[], name: 'delivered' | 'retried' | 'dead_lettered' | 'attempts' | 'canceled'): number {
  return rows.reduce((total, row) => total + row[name], 0);
}

/** Every hour of the range has a bar, also those without rows. */
function barsOf(rows: Stats[], since: number, until: number): Bar[] {
  const hour = 3600_000;
  const byHour = new Map(rows.map((row) => [parseTime(row.hour ?? ''), row]));
  const step = until - since > 3 * 24 * hour ? 6 * hour : hour;
  const bars: Bar[] = [];
  for (let at = Math.floor(since / step) * step; at <= until; at += step) {
    const inside: Stats[] = [];
    for (let each = at; each < at + step; each += hour) {
      const row = byHour.get(each);
      if (row) inside.push(row);
    }
    bars.push({
      label: `${formatTime(at, zone.value, now.value).slice(0, -3)}${step > hour ? ', 6 hours' : ''}`,
      axis: formatHour(at, zone.value),
      parts: [
        { name: 'delivered', class: 'delivered', value: sum(inside, 'delivered') },
        { name: 'retried', class: 'retried', value: sum(inside, 'retried') },
        { name: 'dead letters', class: 'dead', value: sum(inside, 'dead_lettered') },
      ],
    });
  }
  return bars;
}

export function Traffic({ rows, since, until }: { rows: Stats[]; since: number; until: number }) {
  return (
    <div class="stack tight">
      <Bars label="Attempts by result" bars={barsOf(rows, since, until)} />
      <div class="legend">
        <span class="swatch-delivered">delivered</span>
        <span class="swatch-retried">failed, retried</span>
        <span class="swatch-dead">dead letters</span>
      </div>
    </div>
  );
}

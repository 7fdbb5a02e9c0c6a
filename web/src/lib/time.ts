// Times as people read them. The API's times are RFC 3339 in UTC with microseconds; what is copied stays as it came.

export type Zone = 'local' | 'utc';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

export function parseTime(text: string): number {
  return Date.parse(text);
}

function format(zone: Zone, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-GB', zone === 'utc' ? { ...options, timeZone: 'UTC' } : options);
}

const cached = new Map<string, Intl.DateTimeFormat>();
function formatter(name: string, zone: Zone, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${name} ${zone}`;
  let found = cached.get(key);
  if (!found) cached.set(key, (found = format(zone, options)));
  return found;
}

/** "8 Apr, 10:04:31"; with the year when it is not this one. */
export function formatTime(ms: number, zone: Zone, now: number): string {
  const isThisYear = new Date(ms).getUTCFullYear() === new Date(now).getUTCFullYear();
  const options: Intl.DateTimeFormatOptions = {
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    ...(isThisYear ? {} : { year: 'numeric' }),
  };
  return formatter(isThisYear ? 'time' : 'time-year', zone, options).format(ms);
}

/** "10:04:31.250" */
export function formatClock(ms: number, zone: Zone): string {
  return formatter('clock', zone, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
  }).format(ms);
}

/** For axes: "10:00", or "8 Apr" at midnight. */
export function formatHour(ms: number, zone: Zone): string {
  const text = formatter('hour', zone, { hour: '2-digit', minute: '2-digit' }).format(ms);
  return text === '00:00' ? formatDay(ms, zone) : text;
}

export function formatDay(ms: number, zone: Zone): string {
  return formatter('day', zone, { day: 'numeric', month: 'short' }).format(ms);
}

/** "now", "12 s ago", "3 min ago", "5 h ago", "2 d ago"; for the future "in 3 min". */
export function formatAge(ms: number, now: number): string {
  const distance = now - ms;
  const span = Math.abs(distance);
  if (span < second) return 'now';
  const text = shortSpan(span);
  return distance > 0 ? `${text} ago` : `in ${text}`;
}

/** The largest unit only: "12 s", "3 min", "5 h", "2 d". */
export function shortSpan(span: number): string {
  if (span < minute) return `${Math.floor(span / second)} s`;
  if (span < hour) return `${Math.floor(span / minute)} min`;
  if (span < day) return `${Math.floor(span / hour)} h`;
  return `${Math.floor(span / day)} d`;
}

/** Two units: "2 min 11 s", "1 d 9 h". */
export function longSpan(span: number): string {
  if (span < second) return `${Math.max(0, Math.round(span))} ms`;
  const units: [number, string][] = [
    [day, 'd'],
    [hour, 'h'],
    [minute, 'min'],
    [second, 's'],
  ];
  const first = units.findIndex(([size]) => span >= size);
  const [size, name] = units[first]!;
  const parts = [`${Math.floor(span / size)} ${name}`];
  const next = units[first + 1];
  const rest = next ? Math.floor((span % size) / next[0]) : 0;
  if (next && rest > 0) parts.push(`${rest} ${next[1]}`);
  return parts.join(' ');
}

/** A countdown: "0:42", "1:02:03". */
export function formatCountdown(left: number): string {
  const seconds = Math.max(0, Math.ceil(left / second));
  const two = (value: number) => String(value).padStart(2, '0');
  const h = Math.floor(seconds / 3600);
  const m = Math.floor((seconds % 3600) / 60);
  const s = seconds % 60;
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/** "42 µs", "3.1 ms", "420 ms", "9.93 s" */
export function formatMicroseconds(us: number): string {
  if (us < 1000) return `${us} µs`;
  const ms = us / 1000;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(2)} s`;
}

/** The value of an input of type datetime-local, which knows only local time. */
export function formatInput(time: string | undefined): string {
  if (!time) return '';
  const date = new Date(time);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Relative ranges of pages. */
export const ranges = { '1h': hour, '24h': day, '7d': 7 * day, '30d': 30 * day } as const;
export type Range = keyof typeof ranges;

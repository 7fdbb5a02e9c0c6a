const grouped = new Intl.NumberFormat('en-US');
const oneDigit = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 });

/** "12,345" */
export function formatCount(value: number): string {
  return grouped.format(value);
}

/** A number that the server stopped counting at: "10,000+". */
export function formatCapped(value: number, isCapped: boolean): string {
  return isCapped ? `${formatCount(value)}+` : formatCount(value);
}

/** "97.3 %"; rounds towards the middle, so that neither 0 % nor 100 % hides an exception. */
export function formatShare(part: number, whole: number): string {
  if (whole === 0) return '–';
  const percent = (part / whole) * 100;
  const shown = Math.round(percent * 10) / 10;
  if (shown === 100 && part < whole) return '99.9 %';
  if (shown === 0 && part > 0) return '0.1 %';
  return `${oneDigit.format(shown)} %`;
}

/** "1 delivery", "2 deliveries" */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** "1.2 KiB" */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${formatCount(bytes)} ${bytes === 1 ? 'byte' : 'bytes'}`;
  if (bytes < 1024 * 1024) return `${oneDigit.format(bytes / 1024)} KiB`;
  return `${oneDigit.format(bytes / 1024 / 1024)} MiB`;
}

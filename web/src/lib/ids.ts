/** Long generated IDs are shortened in the middle: "dlv_01a1…3752". Custom IDs stay as they are. */
export function shortId(id: string): string {
  const match = /^([a-z]+_)([0-9a-f]{32})$/.exec(id);
  if (!match) return id.length > 40 ? `${id.slice(0, 24)}…${id.slice(-8)}` : id;
  return `${match[1]}${match[2]!.slice(0, 4)}…${match[2]!.slice(-4)}`;
}

/** Host and port of a URL, or the text itself if it is none. */
export function hostOf(url: string | null | undefined): string {
  if (!url) return '–';
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}

/** What stands after the host: "/hooks/orders?v=1". */
export function pathOf(url: string | null | undefined): string {
  if (!url) return '';
  try {
    const parsed = new URL(url);
    return parsed.pathname + parsed.search;
  } catch {
    return '';
  }
}

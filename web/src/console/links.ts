// Addresses of the console's pages.
const segment = encodeURIComponent;

function tenant(id: string): string {
  return `/console/tenants/${segment(id)}`;
}

function withQuery(path: string, query: Record<string, string | null | undefined>): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => !!pair[1]);
  return given.length > 0 ? `${path}?${new URLSearchParams(given).toString()}` : path;
}

export const links = {
  overview: '/console',
  tenants: '/console/tenants',
  tenant,
  newEndpoint: (id: string) => `${tenant(id)}/new-endpoint`,
  endpoint: (id: string, endpoint: string, tab?: string) => withQuery(`${tenant(id)}/endpoints/${segment(endpoint)}`, { tab }),
  events: (id: string) => `${tenant(id)}/events`,
  event: (id: string, event: string) => `${tenant(id)}/events/${segment(event)}`,
  deliveries: '/console/deliveries',
  deliveriesWith: (query: Record<string, string | null | undefined>) => withQuery('/console/deliveries', query),
  delivery: (id: string, delivery: string) => `${tenant(id)}/deliveries/${segment(delivery)}`,
  deadLetters: '/console/dead-letters',
  deadLettersWith: (query: Record<string, string | null | undefined>) => withQuery('/console/dead-letters', query),
  replays: (id: string) => `${tenant(id)}/replays`,
  newReplay: (id: string, query: Record<string, string | null | undefined>) => withQuery(`${tenant(id)}/replays/new`, query),
  replay: (id: string, replay: string) => `${tenant(id)}/replays/${segment(replay)}`,
  search: (q: string) => withQuery('/console/search', { q }),
  attempts: '/console/attempts',
  audit: '/console/audit',
  signIn: (next: string) => `/console/sign-in?next=${segment(next)}`,
};

/** A page of the console to go to after signing in; anything else is the overview. */
export function safeNext(next: string | undefined): string {
  if (!next || !/^\/console(\/[\w\-.~%:@/]*)?(\?[^#]*)?$/.test(next)) return links.overview;
  if (next.startsWith('/console/sign-in') || next.startsWith('/console/enter')) return links.overview;
  return next;
}

// Filters of a page: one object for its address, its request and its bulk actions.
import { useLocation } from 'preact-iso';
import { readQuery, unknownValues, writeQuery, type Fields, type Values } from '../../lib/queryString';
import { ranges, type Range } from '../../lib/time';

export function useFilters<F extends Fields>(fields: F) {
  const { path, url, route } = useLocation();
  const search = url.includes('?') ? url.slice(url.indexOf('?')) : '';
  const values = readQuery(fields, search);
  /** Changes some; a list starts at its beginning again. `replace` while typing. */
  const set = (changes: Partial<Values<F>>, replace = false) => {
    const next = { ...values, cursor: undefined, open: undefined, ...changes } as Partial<Values<F>>;
    route(path + writeQuery(fields, next), replace);
  };
  const hrefWith = (changes: Partial<Values<F>>) => path + writeQuery(fields, { ...values, ...changes });
  return { values, set, hrefWith, search, unknown: unknownValues(fields, search) };
}

/** The bounds that a request gets: a relative range starts at a whole minute, so that equal requests are equal. */
export function boundsOf(values: { range?: string; since?: string; until?: string }, now: number): { since?: string; until?: string } {
  if (values.since || values.until) return { since: values.since, until: values.until };
  if (!values.range) return {};
  const span = ranges[values.range as Range];
  const minute = 60_000;
  return { since: new Date(Math.floor((now - span) / minute) * minute).toISOString() };
}

import { useEffect, useRef, useState } from 'preact/hooks';

/**
 * Rows that are shown change in place; new ones wait until somebody asks for them, so that nothing moves under the pointer.
 * A new `list` (other filters, other page) starts afresh.
 */
export function useNewRows<Row>(rows: Row[], keyOf: (row: Row) => string, list: string) {
  const [keys, setKeys] = useState<{ list: string; shown: string[] }>({ list: '', shown: [] });
  const all = useRef(rows);
  all.current = rows;
  const isFresh = keys.list !== list || keys.shown.length === 0;
  useEffect(() => {
    if (rows.length > 0 && isFresh) setKeys({ list, shown: rows.map(keyOf) });
  }, [rows, list, isFresh]);
  const byKey = new Map(rows.map((row) => [keyOf(row), row]));
  const known = new Map<string, Row>();
  const last = useRef(new Map<string, Row>());
  const shown = isFresh ? rows : keys.shown.map((key) => byKey.get(key) ?? last.current.get(key)).filter((row): row is Row => row !== undefined);
  shown.forEach((row) => known.set(keyOf(row), row));
  last.current = known;
  const shownKeys = new Set(keys.shown);
  const waiting = isFresh ? 0 : rows.filter((row) => !shownKeys.has(keyOf(row))).length;
  return { rows: shown, waiting, show: () => setKeys({ list, shown: all.current.map(keyOf) }) };
}

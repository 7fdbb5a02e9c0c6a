import type { ComponentChildren } from 'preact';

export interface Column<Row> {
  name: string;
  cell: (row: Row) => ComponentChildren;
  /** A CSS width; columns keep it, so that nothing jumps on updates. */
  width?: string;
  end?: boolean;
  wrap?: boolean;
  /** Place in the two-line card of narrow screens. `push`: at the right end of its line. */
  card?: 'lead' | 'lead push' | 'second' | 'second push' | 'off';
  title?: (row: Row) => string | undefined;
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string;
  hrefOf?: (row: Row) => string | undefined;
  onOpen?: (row: Row, event: MouseEvent) => void;
  currentKey?: string;
  isStale?: boolean;
  picked?: { keys: ReadonlySet<string>; toggle: (key: string) => void; toggleAll: () => void };
}

/** A list. The first column is the link; a click anywhere in the row follows it. */
export function Table<Row>({ label, columns, rows, keyOf, hrefOf, onOpen, currentKey, isStale, picked }: Props<Row>) {
  const lines = [columns.filter((c) => c.card?.startsWith('lead')), columns.filter((c) => c.card?.startsWith('second'))];
  const hasCards = lines[0]!.length > 0;
  const isAll = picked && rows.length > 0 && rows.every((row) => picked.keys.has(keyOf(row)));
  return (
    <div class="table-frame">
      {isStale && <div class="progress-line" />}
      <table class={['table', hasCards && 'cards', isStale && 'is-stale'].filter(Boolean).join(' ')} aria-label={label}>
        <thead>
          <tr>
            {picked && (
              <th class="pick" scope="col">
                <input type="checkbox" aria-label="Select this page" checked={isAll} onChange={picked.toggleAll} />
              </th>
            )}
            {columns.map((column) => (
              <th key={column.name} scope="col" class={column.end ? 'end' : undefined} style={column.width ? { width: column.width } : undefined}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const key = keyOf(row);
            const href = hrefOf?.(row);
            return (
              <tr
                key={key}
                data-key={key}
                class={[href && 'link', key === currentKey && 'current'].filter(Boolean).join(' ') || undefined}
                onClick={(event) => follow(event, row, href, onOpen)}
              >
                {picked && (
                  <td class="pick">
                    <input type="checkbox" aria-label={`Select ${key}`} checked={picked.keys.has(key)} onChange={() => picked.toggle(key)} />
                  </td>
                )}
                {columns.map((column, index) => (
                  <td
                    key={column.name}
                    class={[column.end && 'end', column.wrap && 'wrap', column.card ?? (hasCards && 'off')].filter(Boolean).join(' ') || undefined}
                    title={column.title?.(row)}
                  >
                    {index === 0 && href ? (
                      <a href={href} onClick={(event) => {
                        if (!onOpen || event.ctrlKey || event.metaKey || event.shiftKey) return;
                        event.preventDefault();
                        event.stopPropagation();
                        onOpen(row, event);
                      }}>
                        {column.cell(row)}
                      </a>
                    ) : (
                      column.cell(row)
                    )}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function follow<Row>(event: MouseEvent, row: Row, href: string | undefined, onOpen: Props<Row>['onOpen']) {
  const target = event.target as Element;
  if (!href || target.closest('a, button, input, label, summary')) return;
  if (String(getSelection() ?? '') !== '') return;
  if (event.ctrlKey || event.metaKey) window.open(href, '_blank', 'noopener');
  else if (onOpen) onOpen(row, event);
  else (event.currentTarget as Element).querySelector('a')?.click();
}

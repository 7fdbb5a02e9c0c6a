import { listAudit, type AuditFilter, type AuditRecord } from '../../../api/cluster';
import { useQuery } from '../../../api/query';
import { ProblemBox } from '../../../features/Problem';
import { shortId } from '../../../lib/ids';
import { Empty, Plain, Skeleton, Time } from '../../../ui/basic';

function shownValue(value: unknown): string {
  if (value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function Differences({ record }: { record: AuditRecord }) {
  const before = (record.before ?? {}) as Record<string, unknown>;
  const after = (record.after ?? {}) as Record<string, unknown>;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  if (names.length === 0) return null;
  return (
    <details>
      <summary>{names.length === 1 ? names[0] : `${names.length} fields`}</summary>
      <table class="differences">
        <thead>
          <tr><th scope="col">Field</th><th scope="col">Before</th><th scope="col">After</th></tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="mono break"><Plain text={record.before ? shownValue(before[name]) : '–'} /></td>
              <td class="mono break"><Plain text={record.after ? shownValue(after[name]) : '–'} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

/** Changes, the newest first, with the values before and after. */
export function AuditList({ filter, cursor, onPage }: { filter: AuditFilter; cursor?: string; onPage?: (next: string | undefined) => void }) {
  const list = useQuery(['audit', filter, cursor], async (signal) => {
    const page = await listAudit(filter, cursor, signal);
    onPage?.(page.next);
    return page;
  }, { keepPrevious: true });
  if (list.isError && !list.data) return <ProblemBox error={list.error} retry={() => void list.refetch()} />;
  if (!list.data) return <Skeleton lines={6} height={28} />;
  if (list.data.rows.length === 0) return <Empty icon="scroll" title="No changes found"><p>Every change by a key, the console, postrider itself or in SQL is recorded.</p></Empty>;
  return (
    <ol class="audit">
      {list.data.rows.map((record) => (
        <li key={record.id}>
          <div class="row">
            <strong class="mono">{record.action}</strong>
            <span class="mono break">{shortId(record.object)}</span>
            {record.tenant_id && <span class="muted">{record.tenant_id}</span>}
            <span class="grow" />
            <Time at={record.at} exact />
          </div>
          <div class="row muted">
            <span>
              by {record.actor.kind} {record.actor.id ? <span class="mono">{shortId(record.actor.id)}</span> : ''}
              {record.address && ` from ${record.address}`}
            </span>
            {record.reason && <span class="break">“<Plain text={record.reason} />”</span>}
          </div>
          <Differences record={record} />
        </li>
      ))}
    </ol>
  );
}

import { useState } from 'preact/hooks';
import { putSubscriptions, type Subscription } from '../../api/endpoints';
import { refresh } from '../../api/query';
import { Button, Card } from '../../ui/basic';
import { CheckField, TextField } from '../../ui/Field';
import { toast } from '../../ui/toasts';
import { can } from '../me';

interface Row {
  pattern: string;
  enabled: boolean;
  versions: string;
}

/** The event types that an endpoint gets. Saved all together. */
export function Subscriptions({ tenant, endpoint, subscriptions }: { tenant: string; endpoint: string; subscriptions: Subscription[] }) {
  const before: Row[] = subscriptions.map((each) => ({ pattern: each.pattern, enabled: each.enabled, versions: (each.versions ?? []).join(', ') }));
  const [rows, setRows] = useState(before);
  const [problem, setProblem] = useState<string>();
  const mayWrite = can('customer');
  const set = (index: number, change: Partial<Row>) => setRows(rows.map((row, at) => (at === index ? { ...row, ...change } : row)));
  const isChanged = JSON.stringify(rows) !== JSON.stringify(before);
  const save = async () => {
    setProblem(undefined);
    try {
      const wanted = rows.filter((row) => row.pattern.trim());
      await putSubscriptions(tenant, endpoint, wanted.map((row) => {
        const versions = row.versions.split(/[\s,]+/).filter(Boolean);
        return { pattern: row.pattern.trim(), enabled: row.enabled, versions: versions.length > 0 ? versions : null };
      }));
      toast('Saved.');
      await refresh(['subscriptions', tenant, endpoint], ['endpoint', tenant, endpoint]);
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  return (
    <Card title="Subscriptions">
      <div class="stack">
        <p class="muted">The endpoint gets every event whose type matches one of these patterns. A change concerns events that are published from now on.</p>
        {rows.map((row, index) => (
          <div key={index} class="subscription">
            <TextField label="Event type or pattern" value={row.pattern} disabled={!mayWrite} placeholder="invoice.*" onInput={(event) => set(index, { pattern: event.currentTarget.value })} />
            <TextField label="Versions" value={row.versions} disabled={!mayWrite} placeholder="all" onInput={(event) => set(index, { versions: event.currentTarget.value })} />
            <CheckField label="On" checked={row.enabled} onChange={(enabled) => set(index, { enabled })} />
            {mayWrite && <Button small kind="quiet" icon="x" aria-label={`Remove ${row.pattern}`} disabled={rows.length === 1} onClick={() => setRows(rows.filter((_, at) => at !== index))} />}
          </div>
        ))}
        {problem && <p class="form-error" role="alert">{problem}</p>}
        {mayWrite && (
          <div class="row">
            <Button small icon="plus" onClick={() => setRows([...rows, { pattern: '', enabled: true, versions: '' }])}>Add</Button>
            <Button small kind="primary" disabled={!isChanged} onClick={() => void save()}>Save</Button>
            {isChanged && <Button small onClick={() => setRows(before)}>Reset</Button>}
          </div>
        )}
      </div>
    </Card>
  );
}

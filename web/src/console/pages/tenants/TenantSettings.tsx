import { useState } from 'preact/hooks';
import { ApiProblem } from '../../../api/client';
import { refresh } from '../../../api/query';
import { updateTenant, type Tenant, type TenantChange } from '../../../api/tenants';
import { can } from '../../../features/me';
import { fieldErrors } from '../../../features/Problem';
import { Button, Card } from '../../../ui/basic';
import { TextField } from '../../../ui/Field';
import { toast } from '../../../ui/toasts';

const limits = [
  ['rate_per_second', 'Deliveries per second', 'To all endpoints together'],
  ['max_in_flight', 'In flight', 'Requests at the same time, to all endpoints together'],
  ['publish_rate_per_second', 'Published events per second', 'Above it, publishing gets 429'],
  ['payload_bytes_max', 'Size of an event, bytes', 'Empty: the setting payload_bytes_max'],
  ['endpoints_max', 'Endpoints', 'Empty: the setting endpoints_max'],
] as const;
type Limit = (typeof limits)[number][0];

function textOf(tenant: Tenant): Record<Limit | 'name', string> {
  const shown = (value: unknown) => (value === null || value === undefined ? '' : String(value));
  return {
    name: shown(tenant.name),
    rate_per_second: shown(tenant.rate_per_second),
    max_in_flight: shown(tenant.max_in_flight),
    publish_rate_per_second: shown(tenant.publish_rate_per_second),
    payload_bytes_max: shown(tenant.payload_bytes_max),
    endpoints_max: shown(tenant.endpoints_max),
  };
}

export function TenantSettings({ tenant, etag }: { tenant: Tenant; etag: string }) {
  const before = textOf(tenant);
  const [values, setValues] = useState(before);
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<string>();
  const changed = (Object.keys(values) as (keyof typeof values)[]).filter((name) => values[name] !== before[name]);
  const mayWrite = can('operators');
  const submit = async (event: Event) => {
    event.preventDefault();
    const change: Record<string, unknown> = {};
    for (const name of changed) change[name] = values[name] === '' ? null : name === 'name' ? values[name] : Number(values[name]);
    setErrors({});
    setProblem(undefined);
    try {
      await updateTenant(tenant.id, etag, change as TenantChange);
      toast('Saved.');
      await refresh(['tenant', tenant.id], ['tenants']);
    } catch (error) {
      setErrors(fieldErrors(error));
      setProblem(error instanceof ApiProblem && error.status === 412 ? 'This tenant was changed after you opened it. Reload the page to see the change.' : String((error as Error).message));
    }
  };
  const set = (name: keyof typeof values) => (event: { currentTarget: { value: string } }) => setValues({ ...values, [name]: event.currentTarget.value });
  return (
    <Card title="Settings">
      <form class="stack form" onSubmit={(event) => void submit(event)}>
        <TextField label="Name" value={values.name} disabled={!mayWrite} error={errors['name']} onInput={set('name')} />
        <div class="form-columns">
          {limits.map(([name, label, hint]) => (
            <TextField key={name} label={label} hint={hint} type="number" step="any" placeholder="no limit" disabled={!mayWrite} value={values[name]} error={errors[name]} onInput={set(name)} />
          ))}
        </div>
        {problem && <p class="form-error" role="alert">{problem}</p>}
        {mayWrite && (
          <div class="row">
            <Button kind="primary" type="submit" disabled={changed.length === 0}>Save</Button>
            {changed.length > 0 && <Button onClick={() => setValues(before)}>Reset</Button>}
          </div>
        )}
      </form>
    </Card>
  );
}

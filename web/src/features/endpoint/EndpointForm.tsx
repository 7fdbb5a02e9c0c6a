import { useState } from 'preact/hooks';
import type { Endpoint, EndpointChange } from '../../api/endpoints';
import { ApiProblem } from '../../api/client';
import { Button, Notice } from '../../ui/basic';
import { SelectField, TextField } from '../../ui/Field';
import { fieldErrors } from '../Problem';

type Text = Record<'url' | 'description' | 'max_attempts' | 'timeout_ms' | 'give_up_seconds' | 'max_in_flight' | 'rate_per_second' | 'ordering' | 'on_rejected', string>;
const numbers = ['max_attempts', 'timeout_ms', 'give_up_seconds', 'max_in_flight', 'rate_per_second'] as const;

function textOf(endpoint: Endpoint): Text {
  const shown = (value: unknown) => (value === null || value === undefined ? '' : String(value));
  return {
    url: endpoint.url ?? '',
    description: shown(endpoint.description),
    max_attempts: shown(endpoint.max_attempts),
    timeout_ms: shown(endpoint.timeout_ms),
    give_up_seconds: shown(endpoint.give_up_seconds),
    max_in_flight: shown(endpoint.max_in_flight),
    rate_per_second: shown(endpoint.rate_per_second),
    ordering: shown(endpoint.ordering) || 'none',
    on_rejected: shown(endpoint.on_rejected) || 'dead_letter',
  };
}

/** Only what differs; an empty number is null, which is the default. */
function changesOf(before: Text, after: Text): EndpointChange {
  const change: Record<string, unknown> = {};
  for (const name of Object.keys(after) as (keyof Text)[]) {
    if (before[name] === after[name]) continue;
    const isNumber = (numbers as readonly string[]).includes(name);
    change[name] = isNumber ? (after[name] === '' ? null : Number(after[name])) : after[name] === '' && name === 'description' ? null : after[name];
  }
  return change as EndpointChange;
}

/** The settings of an endpoint. Saves only what was changed, and only if nobody else changed it meanwhile. */
export function EndpointForm({ endpoint, save, onConflict }: { endpoint: Endpoint; save: (change: EndpointChange) => Promise<unknown>; onConflict: () => Promise<unknown> }) {
  const [before, setBefore] = useState(textOf(endpoint));
  const [values, setValues] = useState(before);
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<string>();
  const [theirs, setTheirs] = useState<Text>();
  const [isBusy, setBusy] = useState(false);
  const set = (name: keyof Text) => (event: { currentTarget: { value: string } }) => setValues({ ...values, [name]: event.currentTarget.value });
  const change = changesOf(before, values);
  const isChanged = Object.keys(change).length > 0;
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setErrors({});
    setProblem(undefined);
    try {
      await save(change);
      setBefore(values);
      setTheirs(undefined);
    } catch (error) {
      if (error instanceof ApiProblem && error.status === 412) {
        await onConflict();
        setTheirs(textOf(endpoint));
      }
      setErrors(fieldErrors(error));
      setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="stack form" onSubmit={(event) => void submit(event)}>
      <TextField label="URL" value={values.url} error={errors['url']} onInput={set('url')} />
      <TextField label="Description" value={values.description} error={errors['description']} maxLength={1024} onInput={set('description')} />
      <div class="form-columns">
        <TextField label="Attempts" type="number" value={values.max_attempts} error={errors['max_attempts']} hint="Before a delivery becomes a dead letter" onInput={set('max_attempts')} />
        <TextField label="Timeout, ms" type="number" value={values.timeout_ms} error={errors['timeout_ms']} hint="Of one attempt" onInput={set('timeout_ms')} />
        <TextField label="Give up after, seconds" type="number" value={values.give_up_seconds} error={errors['give_up_seconds']} onInput={set('give_up_seconds')} />
        <TextField label="In flight" type="number" value={values.max_in_flight} error={errors['max_in_flight']} hint="Requests at the same time" onInput={set('max_in_flight')} />
        <TextField label="Rate per second" type="number" step="any" value={values.rate_per_second} error={errors['rate_per_second']} hint="Empty: no limit" onInput={set('rate_per_second')} />
        <SelectField label="Ordering" value={values.ordering} error={errors['ordering']} onChange={set('ordering')}>
          <option value="none">none</option>
          <option value="strict">strict: one at a time, in order</option>
        </SelectField>
        <SelectField label="After a rejection" value={values.on_rejected} error={errors['on_rejected']} hint="3xx and most 4xx responses" onChange={set('on_rejected')}>
          <option value="dead_letter">dead letter</option>
          <option value="retry">retry</option>
          <option value="pause">pause the endpoint</option>
        </SelectField>
      </div>
      {theirs && (
        <Notice tone="warn" icon="triangle-alert">
          <span class="grow">This endpoint was changed after you opened it. Save again to overwrite the change, or load the new version.</span>
          <Button small onClick={() => { setValues(textOf(endpoint)); setBefore(textOf(endpoint)); setTheirs(undefined); setProblem(undefined); }}>Use theirs</Button>
        </Notice>
      )}
      {problem && !theirs && <p class="form-error" role="alert">{problem}</p>}
      <div class="row">
        <Button kind="primary" type="submit" disabled={!isChanged || isBusy}>{isBusy ? 'Saving…' : 'Save'}</Button>
        {isChanged && <Button onClick={() => setValues(before)}>Reset</Button>}
      </div>
    </form>
  );
}

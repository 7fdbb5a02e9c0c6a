import { useState } from 'preact/hooks';
import { testEndpoint, type Endpoint, type TestExchange } from '../../api/endpoints';
import { refresh } from '../../api/query';
import { explainError } from '../../lib/causes';
import { toCurl } from '../../lib/curl';
import { Badge, Button, copyText, Notice, Plain } from '../../ui/basic';
import { Code, Json } from '../../ui/Code';
import { SelectField, TextArea } from '../../ui/Field';
import { PhaseList, Phases } from '../../ui/Phases';
import { fieldErrors } from '../Problem';
import { toastError } from '../../ui/toasts';

function Result({ exchange }: { exchange: TestExchange }) {
  const explanation = explainError(exchange.error, exchange.response?.status);
  const total = exchange.phases.total_us ?? 0;
  return (
    <div class="stack" role="status">
      <div class="row">
        <Badge state={exchange.delivered ? { word: 'Succeeded', icon: 'circle-check', tone: 'good' } : { word: 'Failed', icon: 'circle-x', tone: 'bad' }} />
        <strong>{explanation?.happened}</strong>
      </div>
      {!exchange.delivered && explanation && (
        <p class="muted">
          {exchange.error_detail && <><Plain text={exchange.error_detail} />. </>}
          {explanation.means} {explanation.advice}
        </p>
      )}
      {exchange.resume === 'resumed' && <Notice tone="good" icon="circle-check">The endpoint is active again.</Notice>}
      {exchange.resume === 'by_hand' && <Notice tone="pause" icon="circle-pause">The endpoint was paused or disabled by hand, so the test does not resume it.</Notice>}
      {total > 0 && (
        <div class="stack tight">
          <Phases phases={exchange.phases} scaleUs={total} />
          <PhaseList phases={exchange.phases} />
        </div>
      )}
      <h3>Request</h3>
      <Code
        label="Request headers"
        text={`${exchange.request.method} ${exchange.request.url}\n${Object.entries(exchange.request.headers).map(([name, value]) => `${name}: ${value}`).join('\n')}`}
      />
      <Json label="Request body" text={exchange.request.body} />
      <div class="row">
        <Button small icon="copy" onClick={() => void copyText(toCurl(exchange.request), 'Copied as curl')}>
          Copy as curl
        </Button>
        <span class="faint">The signature is valid for five minutes.</span>
      </div>
      {exchange.response && (
        <>
          <h3>Response</h3>
          {exchange.response.preview ? <Code label="Response body" text={exchange.response.preview} /> : <p class="muted">{exchange.response.status} without a body.</p>}
        </>
      )}
    </div>
  );
}

/** Sends a sample event, signed as a real one. It counts for nothing: no health, no breaker, no history. */
export function TestPanel({ tenant, endpoint, patterns }: { tenant: string; endpoint: Endpoint; patterns: string[] }) {
  const [type, setType] = useState('');
  const [data, setData] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [exchange, setExchange] = useState<TestExchange>();
  const [errors, setErrors] = useState<Record<string, string>>({});
  const run = async (resume: boolean) => {
    setBusy(true);
    setErrors({});
    try {
      const sample = { ...(type ? { event_type: type } : {}), ...(data.trim() ? { data: JSON.parse(data) as unknown } : {}), resume };
      setExchange(await testEndpoint(tenant, endpoint.id, sample));
      await refresh(['endpoint', tenant, endpoint.id], ['endpoints']);
    } catch (error) {
      if (error instanceof SyntaxError) setErrors({ data: 'is not valid JSON' });
      else if (Object.keys(fieldErrors(error)).length > 0) setErrors(fieldErrors(error));
      else toastError(error);
    } finally {
      setBusy(false);
    }
  };
  const exact = patterns.filter((pattern) => !pattern.includes('*'));
  return (
    <div class="stack form">
      <p class="muted">Sends one request now, signed like a real delivery. It changes neither health nor history; the receiver may act on it.</p>
      <SelectField label="Event type" value={type} error={errors['event_type']} onChange={(event) => setType(event.currentTarget.value)}>
        <option value="">One that the endpoint subscribes to</option>
        {exact.map((each) => <option key={each} value={each}>{each}</option>)}
      </SelectField>
      <TextArea label="Data (optional)" rows={4} value={data} error={errors['data']} placeholder='{"amount": 42}' hint="JSON. Default: the example of the event type." onInput={(event) => setData(event.currentTarget.value)} />
      <div class="row">
        <Button kind="primary" icon="send" disabled={isBusy} onClick={() => void run(false)}>
          {isBusy ? 'Sending…' : 'Send test'}
        </Button>
        {endpoint.status !== 'active' && (
          <Button icon="circle-play" disabled={isBusy} onClick={() => void run(true)}>
            Send test and resume if it succeeds
          </Button>
        )}
      </div>
      {exchange && <Result exchange={exchange} />}
    </div>
  );
}

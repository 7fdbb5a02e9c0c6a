import { useLocation, useRoute } from 'preact-iso';
import { useState } from 'preact/hooks';
import { createEndpoint } from '../../../api/endpoints';
import { refresh } from '../../../api/query';
import { SecretOnce } from '../../../features/endpoint/Secrets';
import { fieldErrors } from '../../../features/Problem';
import { Button, Card } from '../../../ui/basic';
import { TextArea, TextField } from '../../../ui/Field';
import { links } from '../../links';
import { Shell } from '../../shell/Shell';

export function NewEndpointPage() {
  const { params } = useRoute();
  const { route } = useLocation();
  const tenant = params['tenant'] ?? '';
  const [url, setUrl] = useState('');
  const [types, setTypes] = useState('');
  const [description, setDescription] = useState('');
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<string>();
  const [made, setMade] = useState<{ id: string; secret: string }>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setErrors({});
    setProblem(undefined);
    try {
      const event_types = types.split(/[\s,]+/).filter(Boolean);
      const created = await createEndpoint(tenant, { url: url.trim(), event_types, ...(description ? { description } : {}) });
      await refresh(['endpoints']);
      setMade({ id: created.id, secret: created.secret });
    } catch (error) {
      setErrors(fieldErrors(error));
      setProblem((error as Error).message);
    } finally {
      setBusy(false);
    }
  };
  const typeError = Object.entries(errors).find(([name]) => name.startsWith('event_types'))?.[1];
  return (
    <Shell title="New endpoint" crumbs={[{ text: 'Tenants', href: links.tenants }, { text: tenant, href: links.tenant(tenant) }, { text: 'New endpoint' }]}>
      <Card>
        <form class="stack form" onSubmit={(event) => void submit(event)}>
          <TextField label="URL" value={url} autofocus placeholder="https://hooks.example.com/webhooks" error={errors['url']} hint="Where events are sent, as POST with a JSON body." onInput={(event) => setUrl(event.currentTarget.value)} />
          <TextArea label="Event types" rows={3} value={types} placeholder="invoice.paid" error={typeError} hint="One per line. invoice.* matches every type that begins with “invoice.”; * matches all." onInput={(event) => setTypes(event.currentTarget.value)} />
          <TextField label="Description (optional)" value={description} error={errors['description']} onInput={(event) => setDescription(event.currentTarget.value)} />
          {problem && <p class="form-error" role="alert">{problem}</p>}
          <div class="row">
            <Button kind="primary" type="submit" disabled={isBusy || !url.trim() || !types.trim()}>Create endpoint</Button>
          </div>
        </form>
      </Card>
      {made && <SecretOnce title="The signing secret of the endpoint" secret={made.secret} onClose={() => route(links.endpoint(tenant, made.id, 'test'))} />}
    </Shell>
  );
}

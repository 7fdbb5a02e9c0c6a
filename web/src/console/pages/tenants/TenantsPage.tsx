import { useLocation } from 'preact-iso';
import { useState } from 'preact/hooks';
import { refresh, useQuery } from '../../../api/query';
import { createTenant, listTenants } from '../../../api/tenants';
import { ApiFooter } from '../../../features/ApiFooter';
import { can } from '../../../features/me';
import { fieldErrors, ProblemBox } from '../../../features/Problem';
import { formatCount } from '../../../lib/numbers';
import { text } from '../../../lib/queryString';
import { tenantState } from '../../../lib/states';
import { Badge, Button, Card, Empty, Plain, Skeleton, Time } from '../../../ui/basic';
import { Dialog } from '../../../ui/Dialog';
import { TextField } from '../../../ui/Field';
import { Table } from '../../../ui/Table';
import { useFilters } from '../../../features/list/filters';
import { links } from '../../links';
import { Shell } from '../../shell/Shell';
import { Pager } from '../../../features/list/Pager';

function NewTenant({ onClose }: { onClose: () => void }) {
  const { route } = useLocation();
  const [id, setId] = useState('');
  const [name, setName] = useState('');
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<string>();
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      const made = await createTenant(id.trim(), name.trim());
      await refresh(['tenants']);
      route(links.tenant(made.id));
    } catch (error) {
      setErrors(fieldErrors(error));
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <Dialog title="New tenant" onClose={onClose}>
      <form class="stack plain-form" onSubmit={(event) => void submit(event)}>
        <TextField label="ID" value={id} autofocus error={errors['id']} hint="Your ID of the customer. It cannot be changed." onInput={(event) => setId(event.currentTarget.value)} />
        <TextField label="Name" value={name} error={errors['name']} onInput={(event) => setName(event.currentTarget.value)} />
        {problem && Object.keys(errors).length === 0 && <p class="form-error" role="alert">{problem}</p>}
        <div class="dialog-actions">
          <Button onClick={onClose}>Back</Button>
          <Button kind="primary" type="submit" disabled={!id.trim()}>Create tenant</Button>
        </div>
      </form>
    </Dialog>
  );
}

const tenantsQuery = { cursor: text };

export function TenantsPage() {
  const { values, hrefWith } = useFilters(tenantsQuery);
  const [isNew, setNew] = useState(false);
  const list = useQuery(['tenants', values.cursor], (signal) => listTenants(values.cursor, signal), { every: 15_000, keepPrevious: true });
  return (
    <Shell
      title="Tenants"
      crumbs={[{ text: 'Tenants' }]}
      head={
        <div class="page-head">
          <h1 tabIndex={-1}>Tenants</h1>
          <div class="row">{can('operators') && <Button kind="primary" small icon="plus" onClick={() => setNew(true)}>New tenant</Button>}</div>
        </div>
      }
    >
      <Card flush>
        {list.isError && !list.data ? (
          <ProblemBox error={list.error} retry={() => void list.refetch()} />
        ) : !list.data ? (
          <Skeleton lines={8} height={28} />
        ) : list.data.rows.length === 0 ? (
          <Empty icon="users" title="No tenants yet">
            <p>A tenant is one of your customers. It owns endpoints, subscriptions, events and deliveries.</p>
            {can('operators') && <Button kind="primary" onClick={() => setNew(true)}>New tenant</Button>}
          </Empty>
        ) : (
          <Table
            label="Tenants"
            rows={list.data.rows}
            keyOf={(row) => row.id}
            hrefOf={(row) => links.tenant(row.id)}
            isStale={list.isPlaceholderData}
            columns={[
              { name: 'Tenant', cell: (row) => <strong>{row.id}</strong>, card: 'lead' },
              { name: 'Name', width: '30%', cell: (row) => (row.name ? <Plain text={row.name} /> : <span class="faint">–</span>), card: 'second' },
              { name: 'Status', width: '130px', cell: (row) => <Badge state={tenantState(row.status)} />, card: 'lead push' },
              { name: 'Endpoints', width: '100px', end: true, cell: (row) => formatCount(row.endpoint_count), card: 'second push' },
              { name: 'Created', width: '150px', end: true, cell: (row) => <Time at={row.created_at} />, card: 'off' },
            ]}
          />
        )}
      </Card>
      <Pager cursor={values.cursor} next={list.data?.next} hrefWith={(cursor) => hrefWith({ cursor })} />
      <ApiFooter path="/v1/tenants" command="postrider tenant list" />
      {isNew && <NewTenant onClose={() => setNew(false)} />}
    </Shell>
  );
}

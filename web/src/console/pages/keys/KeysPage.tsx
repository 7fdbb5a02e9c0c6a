import { useState } from 'preact/hooks';
import { createKey, listKeys, revokeKey, type Key, type NewKey } from '../../../api/keys';
import { refresh, useQuery } from '../../../api/query';
import { ApiFooter } from '../../../features/ApiFooter';
import { Confirm } from '../../../features/Confirm';
import { SecretOnce } from '../../../features/endpoint/Secrets';
import { can } from '../../../features/me';
import { fieldErrors } from '../../../features/Problem';
import { shortId } from '../../../lib/ids';
import { text } from '../../../lib/queryString';
import type { State } from '../../../lib/states';
import { parseTime } from '../../../lib/time';
import { Badge, Button, Empty, Plain, Time } from '../../../ui/basic';
import { Dialog } from '../../../ui/Dialog';
import { CheckField, SelectField, TextField } from '../../../ui/Field';
import { now } from '../../../ui/settings';
import { Table } from '../../../ui/Table';
import { toast } from '../../../ui/toasts';
import { FilterBar, FilterText } from '../../../features/list/FilterBar';
import { useFilters } from '../../../features/list/filters';
import { ListCard } from '../../../features/list/ListCard';
import { Shell } from '../../shell/Shell';
import { Pager } from '../../../features/list/Pager';

const roles: [NewKey['role'], string][] = [
  ['reader', 'reader: sees everything, changes nothing'],
  ['publisher', 'publisher: publishes events'],
  ['customer', 'customer: manages the endpoints of one tenant'],
  ['operator', 'operator: runs the service'],
  ['admin', 'admin: everything, with keys and outboxes'],
];
const lifetimes = [['', 'never'], ['30', 'in 30 days'], ['90', 'in 90 days'], ['365', 'in a year']] as const;

function stateOf(key: Key, at: number): State {
  if (key.revoked_at) return { word: 'Revoked', icon: 'ban', tone: 'neutral' };
  if (key.expires_at && parseTime(key.expires_at) <= at) return { word: 'Expired', icon: 'power-off', tone: 'neutral' };
  return { word: 'Active', icon: 'circle-check', tone: 'good' };
}

function NewKeyDialog({ onClose, onMade }: { onClose: () => void; onMade: (key: string) => void }) {
  const [role, setRole] = useState<NewKey['role']>('reader');
  const [tenant, setTenant] = useState('');
  const [description, setDescription] = useState('');
  const [payloads, setPayloads] = useState(false);
  const [days, setDays] = useState('');
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<string>();
  const submit = async (event: Event) => {
    event.preventDefault();
    const expires_at = days ? new Date(Date.now() + Number(days) * 86_400_000).toISOString() : null;
    try {
      const made = await createKey({ role, tenant_id: tenant.trim() || null, description: description.trim() || null, payloads, expires_at });
      await refresh(['keys']);
      onMade(made.key);
    } catch (error) {
      setErrors(fieldErrors(error));
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <Dialog title="New key" onClose={onClose}>
      <form class="stack plain-form" onSubmit={(event) => void submit(event)}>
        <SelectField label="Role" value={role} error={errors['role']} onChange={(event) => setRole(event.currentTarget.value as NewKey['role'])}>
          {roles.map(([value, name]) => <option key={value} value={value}>{name}</option>)}
        </SelectField>
        <TextField label="Tenant" value={tenant} error={errors['tenant_id']} hint="Empty: all tenants. A customer's key needs one." onInput={(event) => setTenant(event.currentTarget.value)} />
        <TextField label="Description" value={description} error={errors['description']} hint="What uses the key, such as “billing service”." onInput={(event) => setDescription(event.currentTarget.value)} />
        <SelectField label="Expires" value={days} error={errors['expires_at']} onChange={(event) => setDays(event.currentTarget.value)}>
          {lifetimes.map(([value, name]) => <option key={value} value={value}>{name}</option>)}
        </SelectField>
        <CheckField label="May read event data and responses" checked={payloads} onChange={setPayloads} />
        {problem && <p class="form-error" role="alert">{problem}</p>}
        <div class="dialog-actions">
          <Button onClick={onClose}>Back</Button>
          <Button kind="primary" type="submit">Create key</Button>
        </div>
      </form>
    </Dialog>
  );
}

const keysQuery = { tenant: text, cursor: text };

export function KeysPage() {
  const { values, set, hrefWith } = useFilters(keysQuery);
  const [isNew, setNew] = useState(false);
  const [made, setMade] = useState<string>();
  const [revoked, setRevoked] = useState<Key>();
  const list = useQuery(['keys', values.tenant, values.cursor], (signal) => listKeys(values.tenant, values.cursor, signal), { keepPrevious: true });
  return (
    <Shell
      title="API keys"
      crumbs={[{ text: 'API keys' }]}
      head={
        <div class="page-head">
          <h1 tabIndex={-1}>API keys</h1>
          {can('administer') && <div class="row"><Button kind="primary" small icon="plus" onClick={() => setNew(true)}>New key</Button></div>}
        </div>
      }
    >
      <FilterBar count={values.tenant ? 1 : 0} onClear={() => set({ tenant: undefined })}>
        <FilterText label="Tenant" value={values.tenant} onChange={(tenant, isFinal) => set({ tenant }, !isFinal)} />
      </FilterBar>
      <ListCard
        list={list}
        isEmpty={(data) => data.rows.length === 0}
        empty={<Empty icon="key-round" title={values.tenant ? 'No keys are bound to this tenant' : 'No keys yet'}><p>A key lets a program or a person call the API. Its role says what it may do, and it can be bound to one tenant.</p></Empty>}
      >
        {(data) => (
          <Table
            label="API keys"
            rows={data.rows}
            keyOf={(row) => row.id}
            isStale={list.isPlaceholderData}
            columns={[
              { name: 'Key', cell: (row) => <strong>{row.description ? <Plain text={row.description} /> : shortId(row.id)}</strong>, card: 'lead', title: (row) => row.id },
              { name: 'State', width: '120px', cell: (row) => <Badge state={stateOf(row, now.value)} />, card: 'lead push' },
              { name: 'Role', width: '110px', cell: (row) => row.role, card: 'second' },
              { name: 'Tenant', width: '16%', cell: (row) => row.tenant_id ?? <span class="muted">all</span>, card: 'second' },
              { name: 'Payloads', width: '90px', cell: (row) => (row.payloads ? 'yes' : 'no'), card: 'off' },
              { name: 'Last used', width: '120px', end: true, cell: (row) => (row.last_used_at ? <Time at={row.last_used_at} /> : <span class="muted">never</span>), card: 'off' },
              { name: 'Expires', width: '130px', end: true, cell: (row) => (row.expires_at ? <Time at={row.expires_at} /> : <span class="muted">never</span>), card: 'off' },
              { name: 'Action', width: '100px', end: true, cell: (row) => (row.revoked_at || !can('administer') ? null : <Button small onClick={() => setRevoked(row)}>Revoke</Button>), card: 'second push' },
            ]}
          />
        )}
      </ListCard>
      <Pager cursor={values.cursor} next={list.data?.next} hrefWith={(cursor) => hrefWith({ cursor })} />
      <ApiFooter path={values.tenant ? `/v1/keys?tenant=${encodeURIComponent(values.tenant)}` : '/v1/keys'} command="postrider key list" />
      {isNew && <NewKeyDialog onClose={() => setNew(false)} onMade={(key) => { setNew(false); setMade(key); }} />}
      {made && <SecretOnce secret={made} title="The new key" onClose={() => setMade(undefined)} />}
      {revoked && (
        <Confirm title="Revoke this key" action="Revoke key" isDanger typed={revoked.id.slice(-4)} onClose={() => setRevoked(undefined)} run={async () => {
          await revokeKey(revoked.id);
          toast('The key is revoked.');
          await refresh(['keys']);
        }}>
          <p>Requests with <span class="mono break">{revoked.id}</span> are rejected from now on, and its sessions end. This cannot be undone.</p>
        </Confirm>
      )}
    </Shell>
  );
}

import { useState } from 'preact/hooks';
import { endSecret, listSecrets, rotateSecret, type Secret } from '../../api/endpoints';
import { refresh, useQuery } from '../../api/query';
import { shortId } from '../../lib/ids';
import { Button, Card, Notice, Skeleton, Time } from '../../ui/basic';
import { Code } from '../../ui/Code';
import { Dialog } from '../../ui/Dialog';
import { SelectField } from '../../ui/Field';
import { Table } from '../../ui/Table';
import { toastError } from '../../ui/toasts';
import { Confirm } from '../Confirm';
import { ProblemBox } from '../Problem';

/** A secret, shown once: it is gone when the dialog closes. */
export function SecretOnce({ secret, title, onClose }: { secret: string; title: string; onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose} canClose={false}>
      <p>Store it now. It is not shown again.</p>
      <Code text={secret} label="secret" />
      <div class="dialog-actions">
        <Button kind="primary" onClick={onClose}>I have stored it</Button>
      </div>
    </Dialog>
  );
}

const overlaps = [['0', 'none: the old one stops now'], ['3600', '1 hour'], ['86400', '24 hours'], ['604800', '7 days']] as const;

/** The signing secrets of an endpoint: rotate with an overlap, end the old one. */
export function Secrets({ tenant, endpoint }: { tenant: string; endpoint: string }) {
  const [dialog, setDialog] = useState<'rotate' | Secret>();
  const [made, setMade] = useState<string>();
  const [overlap, setOverlap] = useState('86400');
  const secrets = useQuery(['secrets', tenant, endpoint], (signal) => listSecrets(tenant, endpoint, signal));
  if (secrets.isError) return <ProblemBox error={secrets.error} retry={() => void secrets.refetch()} />;
  if (!secrets.data) return <Skeleton lines={3} />;
  return (
    <div class="stack">
      <Card title="Signing secrets" flush actions={<Button small icon="rotate-cw" onClick={() => setDialog('rotate')}>Rotate</Button>}>
        <Table
          label="Secrets"
          rows={secrets.data}
          keyOf={(row) => row.id}
          columns={[
            { name: 'Secret', cell: (row) => <span class="mono">{row.masked ?? row.reference ?? '–'}</span>, card: 'lead' },
            { name: 'ID', width: '160px', cell: (row) => <span class="mono">{shortId(row.id)}</span>, card: 'off' },
            { name: 'State', width: '30%', cell: (row) => (row.current ? 'Current' : <>Still valid until <Time at={row.expires_at} exact /></>), card: 'second' },
            { name: 'Created', width: '130px', end: true, cell: (row) => <Time at={row.created_at} />, card: 'lead push' },
            { name: 'Action', width: '110px', end: true, cell: (row) => (row.current ? null : <Button small onClick={() => setDialog(row)}>End now</Button>), card: 'second push' },
          ]}
        />
      </Card>
      {dialog === 'rotate' && (
        <Dialog title="Rotate the secret" onClose={() => setDialog(undefined)}>
          <p>A new secret signs from now on. During the overlap every request has a signature of both, so receivers can switch without a failure.</p>
          <SelectField label="Overlap" value={overlap} onChange={(event) => setOverlap(event.currentTarget.value)}>
            {overlaps.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
          </SelectField>
          {overlap === '0' && <Notice tone="warn" icon="triangle-alert">Receivers reject deliveries until they have the new secret.</Notice>}
          <div class="dialog-actions">
            <Button autofocus onClick={() => setDialog(undefined)}>Back</Button>
            <Button kind="primary" onClick={() => {
              rotateSecret(tenant, endpoint, Number(overlap)).then((created) => {
                setMade(created.secret);
                setDialog(undefined);
                void refresh(['secrets', tenant, endpoint]);
              }, toastError);
            }}>Rotate</Button>
          </div>
        </Dialog>
      )}
      {made && <SecretOnce title="The new secret" secret={made} onClose={() => setMade(undefined)} />}
      {dialog && dialog !== 'rotate' && (
        <Confirm title="End the old secret now" action="End old secret" isDanger typed="end" onClose={() => setDialog(undefined)} run={async () => {
          await endSecret(tenant, endpoint, dialog.id);
          await refresh(['secrets', tenant, endpoint]);
        }}>
          <p>Requests are signed with the current secret only. Receivers that still verify with the old one reject them.</p>
        </Confirm>
      )}
    </div>
  );
}

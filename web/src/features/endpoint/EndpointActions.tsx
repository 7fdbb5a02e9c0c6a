import { useState } from 'preact/hooks';
import { cancelPending, deleteEndpoint, disableEndpoint, pauseEndpoint, resumeEndpoint, type Endpoint } from '../../api/endpoints';
import { refresh } from '../../api/query';
import { formatCapped } from '../../lib/numbers';
import { Button, Menu } from '../../ui/basic';
import { toast, toastError } from '../../ui/toasts';
import { Confirm } from '../Confirm';
import { can } from '../me';

/** Pause and resume at once; what loses deliveries asks first. */
export function EndpointActions({ tenant, endpoint }: { tenant: string; endpoint: Endpoint }) {
  const [dialog, setDialog] = useState<'disable' | 'delete' | 'cancel'>();
  if (!can('customer')) return null;
  const { id } = endpoint;
  const again = () => refresh(['endpoint', tenant, id], ['endpoints']);
  const resume = () => resumeEndpoint(tenant, id).then(() => { toast('The endpoint is active again.'); return again(); }, toastError);
  const pause = () =>
    pauseEndpoint(tenant, id).then(() => {
      toast('Paused. Events queue until it is resumed.', { action: { label: 'Undo', run: () => void resume() } });
      return again();
    }, toastError);
  const close = () => setDialog(undefined);
  const pending = formatCapped(endpoint.pending, endpoint.pending_is_capped);
  return (
    <>
      {endpoint.status === 'active' ? (
        <Button small icon="circle-pause" onClick={() => void pause()}>Pause</Button>
      ) : (
        <Button small icon="circle-play" kind="primary" onClick={() => void resume()}>Resume</Button>
      )}
      <Menu label="More" small>
        {endpoint.status !== 'disabled' && <Button icon="power-off" onClick={() => setDialog('disable')}>Disable</Button>}
        {endpoint.pending > 0 && <Button icon="ban" onClick={() => setDialog('cancel')}>Cancel pending deliveries</Button>}
        <Button icon="trash" onClick={() => setDialog('delete')}>Delete</Button>
      </Menu>
      {dialog === 'disable' && (
        <Confirm title="Disable this endpoint" action="Disable" isDanger reason="optional" onClose={close} run={async (reason) => { await disableEndpoint(tenant, id, reason); toast('The endpoint is disabled.'); await again(); }}>
          <p>Nothing is sent or queued any more. The {pending} queued deliveries become dead letters.</p>
        </Confirm>
      )}
      {dialog === 'cancel' && (
        <Confirm title="Cancel pending deliveries" action={`Cancel ${pending} deliveries`} isDanger typed={String(endpoint.pending)} onClose={close} run={async () => {
          const done = await cancelPending(tenant, id);
          toast(`${formatCapped(done.deliveries_canceled, done.deliveries_canceled_is_capped)} deliveries were canceled.`);
          await refresh();
        }}>
          <p>{endpoint.pending_is_capped ? 'More than ' : ''}{pending.replace('+', '')} queued deliveries of this endpoint will not be sent. The receiver does not get these events, unless somebody replays them.</p>
        </Confirm>
      )}
      {dialog === 'delete' && (
        <Confirm title="Delete this endpoint" action="Delete endpoint" isDanger typed="delete" onClose={close} run={async () => { await deleteEndpoint(tenant, id); toast('The endpoint was deleted.'); await refresh(); history.back(); }}>
          <p>The endpoint, its subscriptions and secrets are deleted, and {pending} queued deliveries are not sent. This cannot be undone.</p>
        </Confirm>
      )}
    </>
  );
}

import { useState } from 'preact/hooks';
import { cancelDelivery, replayDelivery, retryDelivery, type DeliveryDetail } from '../../api/deliveries';
import { refresh } from '../../api/query';
import { Button } from '../../ui/basic';
import { toast, toastError } from '../../ui/toasts';
import { Confirm } from '../Confirm';
import { can } from '../me';

/** What can be done with a delivery now. The server checks again. */
export function DeliveryActions({ delivery, hrefOfReplay }: { delivery: DeliveryDetail; hrefOfReplay: (id: string) => string }) {
  const [dialog, setDialog] = useState<'replay' | 'cancel'>();
  if (!can('customer')) return null;
  const isOpen = delivery.status === 'pending' || delivery.status === 'retrying';
  const { tenant_id: tenant, id } = delivery;
  const retry = async () => {
    try {
      await retryDelivery(tenant, id);
      toast('It will be sent now.');
      await refresh(['delivery', id], ['deliveries']);
    } catch (error) {
      toastError(error);
    }
  };
  return (
    <div class="row">
      {isOpen && (
        <Button small icon="rotate-cw" onClick={() => void retry()}>
          Retry now
        </Button>
      )}
      {!isOpen && delivery.status !== 'processing' && (
        <Button small icon="undo" kind={delivery.status === 'dead_letter' ? 'primary' : undefined} onClick={() => setDialog('replay')}>
          Replay
        </Button>
      )}
      {isOpen && (
        <Button small icon="ban" onClick={() => setDialog('cancel')}>
          Cancel delivery
        </Button>
      )}
      {dialog === 'replay' && (
        <Confirm
          title="Replay this delivery"
          action="Replay"
          reason="required"
          onClose={() => setDialog(undefined)}
          run={async (reason) => {
            const made = await replayDelivery(tenant, id, reason);
            toast('A new delivery was created.', { action: { label: 'Show', run: () => location.assign(hrefOfReplay(made.id)) } });
            await refresh(['delivery', id], ['deliveries'], ['dead-letters']);
          }}
        >
          <p>
            The event is sent again to this endpoint, as a new delivery with the same event ID. Receivers that have seen the ID
            before should ignore it.
          </p>
        </Confirm>
      )}
      {dialog === 'cancel' && (
        <Confirm
          title="Cancel this delivery"
          action="Cancel delivery"
          isDanger
          reason="optional"
          onClose={() => setDialog(undefined)}
          run={async (reason) => {
            await cancelDelivery(tenant, id, reason);
            toast('The delivery was canceled.');
            await refresh(['delivery', id], ['deliveries']);
          }}
        >
          <p>It will not be sent again. The endpoint does not get this event, unless somebody replays it.</p>
        </Confirm>
      )}
    </div>
  );
}

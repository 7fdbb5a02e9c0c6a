import { useRoute } from 'preact-iso';
import { getDelivery } from '../../../api/deliveries';
import { useQuery } from '../../../api/query';
import { shortId } from '../../../lib/ids';
import { deliveryState } from '../../../lib/states';
import { links } from '../../links';
import { Shell } from '../../shell/Shell';
import { DeliveryView } from '../../../features/delivery/DeliveryView';

export function DeliveryPage() {
  const { params } = useRoute();
  const tenant = params['tenant'] ?? '';
  const id = params['delivery'] ?? '';
  const found = useQuery(['delivery', id], (signal) => getDelivery(tenant, id, signal));
  const state = found.data ? ` · ${deliveryState(found.data.status).word.toLowerCase()}` : '';
  return (
    <Shell
      title={`${shortId(id)}${state}`}
      crumbs={[{ text: 'Deliveries', href: links.deliveries }, { text: tenant, href: `${links.deliveries}?tenant=${encodeURIComponent(tenant)}` }, { text: shortId(id) }]}
      head={found.data ? <></> : undefined}
    >
      <DeliveryView key={id} tenant={tenant} id={id} links={links} />
    </Shell>
  );
}

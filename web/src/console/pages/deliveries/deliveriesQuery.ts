import { choice, text, type Values } from '../../../lib/queryString';

export const deliveryStatuses = ['pending', 'processing', 'retrying', 'delivered', 'dead_letter', 'canceled'] as const;

/** The filters of the list, in its address; `open` is the delivery in the side panel. */
export const deliveriesQuery = {
  tenant: text,
  status: choice(deliveryStatuses),
  endpoint: text,
  type: text,
  subject: text,
  event: text,
  range: choice(['1h', '24h', '7d', '30d']),
  since: text,
  until: text,
  cursor: text,
  open: text,
};

export type DeliveriesQuery = Values<typeof deliveriesQuery>;

import { memberText } from '../lib/jsonText';
import { body, client, getText, type Schemas } from './client';
import { fillPage, type Page } from './pages';

export type EventDetail = Schemas['EventDetail'];

export interface EventWithText {
  event: EventDetail;
  /** The exact text of `data`; undefined if this key does not see payloads. */
  dataText: string | undefined;
  versionsText: string | undefined;
}

/** An event with its data as text: parsing numbers would change them. */
export async function getEvent(tenant: string, event: string, signal?: AbortSignal): Promise<EventWithText> {
  const { text } = await getText(`/v1/tenants/${encodeURIComponent(tenant)}/events/${encodeURIComponent(event)}`, signal);
  return { event: JSON.parse(text) as EventDetail, dataText: memberText(text, 'data'), versionsText: memberText(text, 'versions') };
}

export interface EventFilter {
  type?: string;
  subject?: string;
  since?: string;
  until?: string;
}

export function listEvents(tenant: string, filter: EventFilter, cursor: string | undefined, signal?: AbortSignal): Promise<Page<Schemas['Event']>> {
  return fillPage(50, cursor, (next) =>
    body(client.GET('/v1/tenants/{tenant}/events', { params: { path: { tenant }, query: { ...filter, cursor: next, limit: 50 } }, signal })),
  );
}

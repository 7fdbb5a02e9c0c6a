// Who is signed in, for both apps.
import { signal } from '@preact/signals';
import { body, client, configureApi, type Me } from '../api/client';

export const me = signal<Me | undefined>(undefined);
/** The session ended while a page was open. */
export const isSignedOut = signal(false);

export type Capability = Me['capabilities'][number];

/** Hides what the server would reject; the server decides. */
export function can(capability: Capability): boolean {
  return me.value?.capabilities.includes(capability) ?? false;
}

export async function loadMe(): Promise<void> {
  const found = await body(client.GET('/v1/me'));
  configureApi({ csrf: found.csrf_token ?? '' });
  me.value = found;
  isSignedOut.value = false;
}

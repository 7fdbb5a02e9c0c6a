import { client, configureApi, onSessionLost, postJson } from '../api/client';
import { queryClient } from '../api/query';
import { isSignedOut, loadMe, me } from '../features/me';

/** Signs in with a key or with the token of a link. Neither is kept. */
export async function signIn(credential: { key: string } | { link: string }): Promise<void> {
  configureApi({ csrf: '' });
  await postJson('/console/session', credential);
  await loadMe();
}

export async function signOut(): Promise<void> {
  await client.DELETE('/console/session');
  queryClient.clear();
  me.value = undefined;
  location.assign('/console/sign-in');
}

/** A page that was open when the session ended asks to sign in over it, so that no input is lost. */
export function watchSession(): void {
  onSessionLost(() => {
    if (me.value) isSignedOut.value = true;
  });
}

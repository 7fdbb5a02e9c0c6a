import { useLocation } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import { ApiProblem } from '../../../api/client';
import { Button, Card, Notice } from '../../../ui/basic';
import { TextField } from '../../../ui/Field';
import { Logo } from '../../../ui/Logo';
import { links, safeNext } from '../../links';
import { signIn } from '../../session';

/** One field for a key. It is sent once and forgotten. */
export function SignInForm({ onDone }: { onDone: () => void }) {
  const [isShown, setShown] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem('key') as HTMLInputElement;
    const key = field.value.trim();
    if (!key) return field.focus();
    setBusy(true);
    setError(undefined);
    try {
      await signIn({ key });
      onDone();
    } catch (problem) {
      setError(problem instanceof ApiProblem ? problem.detail : String(problem));
      field.select();
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <TextField
        label="API key"
        name="key"
        type={isShown ? 'text' : 'password'}
        placeholder="pr_…"
        error={error}
        autofocus
        hint="With the role reader, operator or admin. It is sent once and not stored in the browser."
      />
      <div class="row">
        <Button kind="primary" type="submit" disabled={isBusy}>
          {isBusy ? 'Signing in…' : 'Sign in'}
        </Button>
        <Button kind="quiet" onClick={() => setShown(!isShown)}>
          {isShown ? 'Hide key' : 'Show key'}
        </Button>
      </div>
    </form>
  );
}

export function SignInPage() {
  const { query, route } = useLocation();
  useEffect(() => {
    document.title = 'Sign in · postrider';
  }, []);
  return (
    <main class="centered">
      <Card>
        <div class="stack">
          <Logo />
          <h1 tabIndex={-1}>Sign in to postrider</h1>
          <SignInForm onDone={() => route(safeNext(query['next']), true)} />
          <p class="muted">
            The first key is printed when postrider starts on an empty database, or set with <code>POSTRIDER_ADMIN_KEY</code>.
            With a key at hand, <code>POST /v1/console-links</code> creates a link that signs in once.
          </p>
        </div>
      </Card>
    </main>
  );
}

/** /console/enter#l=…: exchanges the one-time link for a session. */
export function EnterPage() {
  const { route } = useLocation();
  const [error, setError] = useState<string>();
  useEffect(() => {
    document.title = 'Sign in · postrider';
    const token = new URLSearchParams(location.hash.slice(1)).get('l') ?? '';
    history.replaceState(null, '', '/console/enter');
    signIn({ link: token }).then(
      () => route(links.overview, true),
      (problem: unknown) => setError(problem instanceof ApiProblem ? problem.detail : String(problem)),
    );
  }, []);
  return (
    <main class="centered">
      <Card>
        <div class="stack">
          <Logo />
          <h1 tabIndex={-1}>{error ? 'This link does not work' : 'Signing in…'}</h1>
          {error && (
            <>
              <Notice tone="warn" icon="triangle-alert">
                {error}
              </Notice>
              <p>
                Or <a href="/console/sign-in">sign in with an API key</a>.
              </p>
            </>
          )}
        </div>
      </Card>
    </main>
  );
}

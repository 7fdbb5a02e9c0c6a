// First the order of the layers, then everything else.
import '../ui/tokens.css';
import '../ui/base.css';
import '../ui/ui.css';
import '../ui/charts.css';
import './shell/shell.css';
import '../features/features.css';
import { render } from 'preact';
import { LocationProvider, Route, Router, useLocation } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import { ApiProblem } from '../api/client';
import { isSignedOut, loadMe, me } from '../features/me';
import { ProblemBox } from '../features/Problem';
import { Dialog } from '../ui/Dialog';
import { startSettings } from '../ui/settings';
import { Toasts } from '../ui/toasts';
import { links } from './links';
import { EnterPage, SignInForm, SignInPage } from './pages/signIn/SignInPage';
import { NotFoundPage } from './pages/NotFoundPage';
import { routes } from './routes';
import { watchSession } from './session';

/** Pages that need a session. Without one, the way leads to the sign-in page and back. */
function Pages() {
  const { url, route } = useLocation();
  const [error, setError] = useState<Error>();
  useEffect(() => {
    if (me.value) return;
    loadMe().catch((problem: Error) => {
      if (problem instanceof ApiProblem && problem.status === 401) route(links.signIn(url), true);
      else setError(problem);
    });
  }, []);
  if (!me.value) return error ? <ProblemBox error={error} retry={() => location.reload()} /> : <div aria-busy="true" />;
  return (
    <>
      <Router>
        {routes.map((each) => (
          <Route key={each.path} path={each.path} component={each.component} />
        ))}
        <Route default component={NotFoundPage} />
      </Router>
      {isSignedOut.value && (
        <Dialog title="Sign in again" onClose={() => undefined} canClose={false}>
          <p>Your session has ended. What you entered on this page is still here.</p>
          <SignInForm onDone={() => (isSignedOut.value = false)} />
        </Dialog>
      )}
    </>
  );
}

/** One router only: a router inside another sees the rest of the address. */
function Root() {
  const { path } = useLocation();
  if (path === '/console/sign-in') return <SignInPage />;
  if (path === '/console/enter') return <EnterPage />;
  return <Pages />;
}

function App() {
  return (
    <LocationProvider scope="/console">
      <Root />
      <Toasts />
    </LocationProvider>
  );
}

/** After an upgrade the files of the old version are gone: load the new ones, once. */
function reloadAfterUpgrade() {
  const name = 'postrider-reloaded';
  addEventListener('vite:preloadError', () => {
    const last = Number(sessionStorage.getItem(name) ?? 0);
    if (Date.now() - last < 30_000) return;
    sessionStorage.setItem(name, String(Date.now()));
    location.reload();
  });
}

startSettings();
watchSession();
reloadAfterUpgrade();
render(<App />, document.getElementById('app')!);

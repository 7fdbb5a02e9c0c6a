import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import { dataAt, isLive } from '../../api/query';
import { can, me } from '../../features/me';
import { shortId } from '../../lib/ids';
import { formatAge } from '../../lib/time';
import { Button } from '../../ui/basic';
import { Icon, type IconName } from '../../ui/Icon';
import { Logo } from '../../ui/Logo';
import { now, theme, zone, type Theme } from '../../ui/settings';
import { navigation, type NavEntry } from '../navigation';
import { signOut } from '../session';

function isCurrent(entry: NavEntry, path: string): boolean {
  return entry.href === '/console' ? path === '/console' || path === '/console/' : entry.match(path);
}

function Nav({ isOpen, onFollow }: { isOpen: boolean; onFollow: () => void }) {
  const { path } = useLocation();
  return (
    <nav class={isOpen ? 'nav is-open' : 'nav'} aria-label="Pages" onClick={onFollow}>
      {navigation.map((group) => {
        const entries = group.entries.filter((entry) => (!entry.needs || can(entry.needs)) && (!entry.isForAll || !me.value?.tenant_id));
        if (entries.length === 0) return null;
        return (
          <>
            {group.title && <h2>{group.title}</h2>}
            {entries.map((entry) => (
              <a key={entry.href} href={entry.href} title={entry.name} aria-current={isCurrent(entry, path) ? 'page' : undefined}>
                <Icon name={entry.icon} />
                <span>{entry.name}</span>
              </a>
            ))}
          </>
        );
      })}
      <div class="nav-end">
        <div class="who">
          {me.value?.role}
          {me.value?.tenant_id && ` of ${me.value.tenant_id}`}
          <br />
          {me.value && (me.value.description || shortId(me.value.key_id ?? ''))}
          <br />
          postrider {me.value?.server.version}
        </div>
        <a href="/console/sign-in" title="Sign out" onClick={(event) => {
          event.preventDefault();
          event.stopImmediatePropagation();
          void signOut();
        }}>
          <Icon name="log-out" />
          <span>Sign out</span>
        </a>
      </div>
    </nav>
  );
}

const themeIcons: Record<Theme, IconName> = { system: 'monitor', light: 'sun', dark: 'moon' };
const themeOrder: Theme[] = ['system', 'light', 'dark'];

function TopBar({ crumbs }: { crumbs: Crumb[] }) {
  const next = themeOrder[(themeOrder.indexOf(theme.value) + 1) % themeOrder.length]!;
  return (
    <header class="topbar">
      <nav class="crumbs grow" aria-label="Where you are">
        {crumbs.map((crumb, index) => (
          <>
            {index > 0 && <Icon name="chevron-right" />}
            {crumb.href ? <a href={crumb.href}>{crumb.text}</a> : <span class="truncate">{crumb.text}</span>}
          </>
        ))}
      </nav>
      <Button small kind="quiet" icon={isLive.value ? 'pause' : 'play'} aria-pressed={!isLive.value} title="Stops every update of this page (p)" onClick={() => (isLive.value = !isLive.value)}>
        <span class="wide-only number">{isLive.value ? 'Live' : `Paused, data from ${formatAge(dataAt.value || now.value, now.value)}`}</span>
        <span class="visually-hidden">{isLive.value ? 'Pause updates' : 'Resume updates'}</span>
      </Button>
      <Button small kind="quiet" icon="globe" title="Time zone of all times" onClick={() => (zone.value = zone.value === 'utc' ? 'local' : 'utc')}>
        <span>{zone.value === 'utc' ? 'UTC' : 'Local'}</span>
      </Button>
      <Button small kind="quiet" icon={themeIcons[theme.value]} title={`Theme: ${theme.value}. Switch to ${next}`} aria-label={`Theme: ${theme.value}`} onClick={() => (theme.value = next)} />
    </header>
  );
}

export interface Crumb {
  text: string;
  href?: string;
}

/** The frame of every page: navigation, top bar, heading. A new page moves the focus to its heading. */
export function Shell({ title, crumbs, head, children }: { title: string; crumbs: Crumb[]; head?: ComponentChildren; children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  const { path } = useLocation();
  useEffect(() => {
    document.title = `${title} · postrider`;
  }, [title]);
  useEffect(() => {
    document.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true });
  }, [path]);
  return (
    <div class="shell">
      <a class="skip button" href="#main" onClick={(event) => {
        event.preventDefault();
        document.querySelector<HTMLElement>('h1')?.focus();
      }}>
        Skip to content
      </a>
      <a class="brand" href="/console">
        <Logo />
        <span>postrider</span>
      </a>
      <TopBar crumbs={crumbs} />
      <Nav isOpen={isOpen} onFollow={() => setOpen(false)} />
      <main class="page" id="main">
        {head ?? (
          <div class="page-head">
            <h1 tabIndex={-1}>{title}</h1>
          </div>
        )}
        {children}
      </main>
      <BottomBar onMore={() => setOpen(!isOpen)} />
    </div>
  );
}

function BottomBar({ onMore }: { onMore: () => void }) {
  const { path } = useLocation();
  const entries = navigation.flatMap((group) => group.entries).filter((entry) => entry.isInBottomBar);
  return (
    <nav class="bottom-bar" aria-label="Main pages">
      {entries.map((entry) => (
        <a key={entry.href} href={entry.href} aria-current={isCurrent(entry, path) ? 'page' : undefined}>
          <Icon name={entry.icon} />
          {entry.name}
        </a>
      ))}
      <button type="button" onClick={onMore}>
        <Icon name="menu" />
        More
      </button>
    </nav>
  );
}

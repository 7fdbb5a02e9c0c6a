// Small parts without state of their own.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { visible } from '../lib/jsonText';
import type { State } from '../lib/states';
import { formatAge, formatTime, parseTime } from '../lib/time';
import { Icon, type IconName } from './Icon';
import { now, zone } from './settings';
import { toast } from './toasts';

type ButtonProps = {
  kind?: 'primary' | 'danger' | 'quiet';
  small?: boolean;
  icon?: IconName;
  children?: ComponentChildren;
} & Omit<JSX.IntrinsicElements['button'], 'icon' | 'kind'>;

export function Button({ kind, small, icon, children, class: extra, ...rest }: ButtonProps) {
  const classes = ['button', kind, small && 'small', extra].filter(Boolean).join(' ');
  return (
    <button type="button" {...rest} class={classes}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

export function LinkButton({ kind, small, icon, children, href, target }: {
  kind?: 'primary' | 'quiet';
  small?: boolean;
  icon?: IconName;
  children?: ComponentChildren;
  href: string;
  target?: '_blank';
}) {
  return (
    <a href={href} target={target} rel={target && 'noreferrer'} class={['button', kind, small && 'small'].filter(Boolean).join(' ')}>
      {icon && <Icon name={icon} />}
      {children}
    </a>
  );
}

export function Badge({ state, more }: { state: State; more?: string }) {
  return (
    <span class={`badge tone-${state.tone}`}>
      <Icon name={state.icon} />
      {state.word}
      {more && ` ${more}`}
    </span>
  );
}

/** Text from outside: control and bidirectional characters are shown, never obeyed. */
export function Plain({ text }: { text: string }) {
  return <>{visible(text)}</>;
}

/** A time: its age under a day, otherwise the time itself; the other one and UTC on hover. */
export function Time({ at, exact }: { at: string | null | undefined; exact?: boolean }) {
  if (!at) return <span class="faint">–</span>;
  const ms = parseTime(at);
  const full = formatTime(ms, zone.value, now.value);
  const age = formatAge(ms, now.value);
  const isRecent = Math.abs(now.value - ms) < 24 * 3600_000;
  const shown = exact || !isRecent ? full : age;
  return (
    <time dateTime={at} title={`${shown === full ? age : full}\n${at}`} class="number">
      {shown}
      {exact && zone.value === 'utc' && ' UTC'}
    </time>
  );
}

export async function copyText(text: string, what = 'Copied'): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // On plain http there is no clipboard API.
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'visually-hidden';
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  toast(what);
}

export function Copy({ text, children, label }: { text: string; children?: ComponentChildren; label: string }) {
  return (
    <button type="button" class="copy" title={`${label}: ${text}`} aria-label={`Copy ${label}`} onClick={(event) => {
      event.stopPropagation();
      void copyText(text);
    }}>
      <span class="truncate">{children ?? text}</span>
      <Icon name="copy" />
    </button>
  );
}

export function Card({
  title,
  actions,
  children,
  flush,
  id,
}: {
  title?: ComponentChildren;
  actions?: ComponentChildren;
  children?: ComponentChildren;
  flush?: boolean;
  id?: string;
}) {
  return (
    <section class={flush ? 'card flush' : 'card'} id={id}>
      {title && (
        <header>
          <h2>{title}</h2>
          {actions && <div class="row grow end-row">{actions}</div>}
        </header>
      )}
      <div class="card-body">{children}</div>
    </section>
  );
}

export function Notice({ tone, icon, children }: { tone: State['tone']; icon: IconName; children: ComponentChildren }) {
  return (
    <div class={`notice tone-${tone}`}>
      <Icon name={icon} />
      <div class="row grow">{children}</div>
    </div>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h3>{title}</h3>
      {children}
    </div>
  );
}

/** Nothing for 150 ms, then lines of the height of what is coming. */
export function Skeleton({ lines = 6, height = 20 }: { lines?: number; height?: number }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="stack tight skeletons" aria-busy="true" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <svg key={index} width="100%" height={height} class={isShown ? 'skeleton' : ''} aria-hidden="true" />
      ))}
    </div>
  );
}

export function Facts({ children }: { children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>;
}
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** A button that opens a list of buttons; Esc and a click elsewhere close it. */
export function Menu({ label, icon, children, small }: { label: string; icon?: IconName; small?: boolean; children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return undefined;
    const onPointer = (event: Event) => {
      if (!element.current?.contains(event.target as Node)) setOpen(false);
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape') setOpen(false);
    };
    document.addEventListener('pointerdown', onPointer);
    document.addEventListener('keydown', onKey);
    return () => {
      document.removeEventListener('pointerdown', onPointer);
      document.removeEventListener('keydown', onKey);
    };
  }, [isOpen]);
  return (
    <div class="menu" ref={element}>
      <Button small={small} icon={icon} aria-haspopup="true" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {label}
        <Icon name="chevron-down" />
      </Button>
      {isOpen && (
        <div class="menu-list" onClick={() => setOpen(false)}>
          {children}
        </div>
      )}
    </div>
  );
}

// What a person chose for this browser: theme, zone, density, shortcuts. Nothing else is stored.
import { effect, signal } from '@preact/signals';
import type { Zone } from '../lib/time';

export type Theme = 'system' | 'light' | 'dark';
const name = 'postrider';

interface Stored {
  theme: Theme;
  zone: Zone;
  density: 'normal' | 'compact';
  shortcuts: boolean;
}

function load(): Stored {
  const defaults: Stored = { theme: 'system', zone: 'local', density: 'normal', shortcuts: true };
  try {
    return { ...defaults, ...JSON.parse(localStorage.getItem(name) ?? '{}') };
  } catch {
    return defaults;
  }
}

const stored = load();
export const theme = signal<Theme>(stored.theme);
export const zone = signal<Zone>(stored.zone);
export const density = signal(stored.density);
export const hasShortcuts = signal(stored.shortcuts);

/** Follows the choices, and keeps them. */
export function startSettings(): void {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const isDark = signal(dark.matches);
  dark.addEventListener('change', () => (isDark.value = dark.matches));
  effect(() => {
    const shown = theme.value === 'system' ? (isDark.value ? 'dark' : 'light') : theme.value;
    document.documentElement.dataset['theme'] = shown;
    document.documentElement.dataset['density'] = density.value;
  });
  effect(() => {
    const value: Stored = { theme: theme.value, zone: zone.value, density: density.value, shortcuts: hasShortcuts.value };
    try {
      localStorage.setItem(name, JSON.stringify(value));
    } catch {
      // Private windows may have none.
    }
  });
}

/** Ticks once a second while the page is visible, for ages and countdowns. */
export const now = signal(Date.now());
setInterval(() => {
  if (document.visibilityState === 'visible') now.value = Date.now();
}, 1000);

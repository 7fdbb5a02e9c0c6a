import type { Capability } from '../features/me';
import type { IconName } from '../ui/Icon';

export interface NavEntry {
  name: string;
  href: string;
  icon: IconName;
  match: (path: string) => boolean;
  needs?: Capability;
  /** Concerns all tenants: not for keys that are bound to one. */
  isForAll?: boolean;
  isInBottomBar?: boolean;
}

function below(prefix: string): (path: string) => boolean {
  return (path) => path === prefix || path.startsWith(`${prefix}/`);
}

export const navigation: { title?: string; entries: NavEntry[] }[] = [
  {
    entries: [
      { name: 'Overview', href: '/console', icon: 'dashboard', match: below('/console'), isInBottomBar: true },
      {
        name: 'Deliveries',
        href: '/console/deliveries',
        icon: 'send',
        match: (path) => below('/console/deliveries')(path) || /^\/console\/tenants\/[^/]+\/deliveries/.test(path),
        isInBottomBar: true,
      },
      { name: 'Attempts', href: '/console/attempts', icon: 'activity', match: below('/console/attempts') },
      { name: 'Dead letters', href: '/console/dead-letters', icon: 'mail-x', match: below('/console/dead-letters'), isInBottomBar: true },
      {
        name: 'Tenants',
        href: '/console/tenants',
        icon: 'users',
        match: (path) => below('/console/tenants')(path) && !/^\/console\/tenants\/[^/]+\/deliveries/.test(path),
        isInBottomBar: true,
      },
      { name: 'Search', href: '/console/search', icon: 'search', match: below('/console/search') },
    ],
  },
  {
    title: 'Service',
    entries: [
      { name: 'Cluster', href: '/console/cluster', icon: 'server', match: below('/console/cluster'), isForAll: true },
      { name: 'API keys', href: '/console/keys', icon: 'key-round', match: below('/console/keys'), needs: 'administer' },
      { name: 'Audit log', href: '/console/audit', icon: 'scroll', match: below('/console/audit'), needs: 'operate' },
      { name: 'Help', href: '/console/help', icon: 'help', match: below('/console/help') },
    ],
  },
];

// The sitemap of the console.
import { lazy } from 'preact-iso';
import type { AnyComponent } from 'preact';
import { OverviewPage } from './pages/overview/OverviewPage';

export interface PageRoute {
  path: string;
  component: AnyComponent;
}

const DeliveriesPage = lazy(async () => (await import('./pages/deliveries/DeliveriesPage')).DeliveriesPage);
const DeliveryPage = lazy(async () => (await import('./pages/deliveries/DeliveryPage')).DeliveryPage);
const TenantsPage = lazy(async () => (await import('./pages/tenants/TenantsPage')).TenantsPage);
const TenantPage = lazy(async () => (await import('./pages/tenants/TenantPage')).TenantPage);
const EndpointPage = lazy(async () => (await import('./pages/endpoints/EndpointPage')).EndpointPage);
const NewEndpointPage = lazy(async () => (await import('./pages/endpoints/NewEndpointPage')).NewEndpointPage);
const EventsPage = lazy(async () => (await import('./pages/events/EventsPage')).EventsPage);
const EventPage = lazy(async () => (await import('./pages/events/EventPage')).EventPage);
const DeadLettersPage = lazy(async () => (await import('./pages/deadLetters/DeadLettersPage')).DeadLettersPage);
const ReplaysPage = lazy(async () => (await import('./pages/replays/ReplayPages')).ReplaysPage);
const NewReplayPage = lazy(async () => (await import('./pages/replays/ReplayPages')).NewReplayPage);
const ReplayPage = lazy(async () => (await import('./pages/replays/ReplayPages')).ReplayPage);
const SearchPage = lazy(async () => (await import('./pages/search/SearchPage')).SearchPage);
const GoPage = lazy(async () => (await import('./pages/search/SearchPage')).GoPage);
const AttemptsPage = lazy(async () => (await import('./pages/attempts/AttemptsPage')).AttemptsPage);
const ClusterPage = lazy(async () => (await import('./pages/cluster/ClusterPage')).ClusterPage);
const KeysPage = lazy(async () => (await import('./pages/keys/KeysPage')).KeysPage);
const AuditPage = lazy(async () => (await import('./pages/audit/AuditPage')).AuditPage);
const HelpPage = lazy(async () => (await import('./pages/help/HelpPage')).HelpPage);

export const routes: PageRoute[] = [
  { path: '/console', component: OverviewPage },
  { path: '/console/deliveries', component: DeliveriesPage },
  { path: '/console/dead-letters', component: DeadLettersPage },
  { path: '/console/tenants', component: TenantsPage },
  { path: '/console/tenants/:tenant', component: TenantPage },
  { path: '/console/tenants/:tenant/new-endpoint', component: NewEndpointPage },
  { path: '/console/tenants/:tenant/endpoints/:endpoint', component: EndpointPage },
  { path: '/console/tenants/:tenant/events', component: EventsPage },
  { path: '/console/tenants/:tenant/events/:event', component: EventPage },
  { path: '/console/tenants/:tenant/deliveries/:delivery', component: DeliveryPage },
  { path: '/console/tenants/:tenant/replays', component: ReplaysPage },
  { path: '/console/tenants/:tenant/replays/new', component: NewReplayPage },
  { path: '/console/tenants/:tenant/replays/:replay', component: ReplayPage },
  { path: '/console/search', component: SearchPage },
  { path: '/console/go/:id', component: GoPage },
  { path: '/console/attempts', component: AttemptsPage },
  { path: '/console/cluster', component: ClusterPage },
  { path: '/console/keys', component: KeysPage },
  { path: '/console/audit', component: AuditPage },
  { path: '/console/help', component: HelpPage },
];

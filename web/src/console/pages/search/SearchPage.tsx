import { useLocation, useRoute } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import { useQuery } from '../../../api/query';
import { search, type SearchHit } from '../../../api/search';
import { ApiFooter } from '../../../features/ApiFooter';
import { ProblemBox } from '../../../features/Problem';
import { quote } from '../../../lib/curl';
import { shortId } from '../../../lib/ids';
import { text } from '../../../lib/queryString';
import { Button, Card, Empty, LinkButton, Plain, Skeleton } from '../../../ui/basic';
import { Table } from '../../../ui/Table';
import { useFilters } from '../../../features/list/filters';
import { links } from '../../links';
import { ListCard } from '../../../features/list/ListCard';
import { Shell } from '../../shell/Shell';
import './search.css';

const kinds = { tenant: 'Tenant', endpoint: 'Endpoint', event: 'Event', delivery: 'Delivery' } as const;

function hrefOf(hit: SearchHit): string {
  if (hit.kind === 'tenant') return links.tenant(hit.id);
  if (hit.kind === 'endpoint') return links.endpoint(hit.tenant_id, hit.id);
  if (hit.kind === 'event') return links.event(hit.tenant_id, hit.id);
  return links.delivery(hit.tenant_id, hit.id);
}

function apiPath(q: string): string {
  return `/v1/search?${new URLSearchParams({ q }).toString()}`;
}

/** The only result that has exactly this ID: the one that was meant. */
function exactHit(hits: SearchHit[] | undefined, q: string): SearchHit | undefined {
  const exact = hits?.filter((hit) => hit.id === q) ?? [];
  return exact.length === 1 ? exact[0] : undefined;
}

const searchQuery = { q: text };

export function SearchPage() {
  const { values, set } = useFilters(searchQuery);
  const { route } = useLocation();
  const [typed, setTyped] = useState(values.q ?? '');
  useEffect(() => setTyped(values.q ?? ''), [values.q]);
  const q = values.q ?? '';
  const found = useQuery(['search', q], (signal) => search(q, signal), { enabled: q !== '' });
  const exact = exactHit(found.data, q);
  useEffect(() => {
    if (exact) route(hrefOf(exact), true);
  }, [exact]);
  const submit = (event: Event) => {
    event.preventDefault();
    set({ q: typed.trim() || undefined });
  };
  return (
    <Shell title="Search" crumbs={[{ text: 'Search' }]}>
      <form class="search-form row" role="search" onSubmit={submit}>
        <input class="input grow" aria-label="Search for" placeholder="ID, subject or host name" maxLength={512} spellcheck={false} autocomplete="off" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        <Button kind="primary" type="submit" icon="search">Search</Button>
      </form>
      {q === '' ? (
        <Card>
          <Empty icon="search" title="What are you looking for?">
            <p>Paste the ID of a tenant, endpoint, event or delivery, the subject of an event (such as an invoice number), or the host name of an endpoint.</p>
          </Empty>
        </Card>
      ) : (
        <ListCard
          list={found}
          isEmpty={(hits) => hits.length === 0}
          empty={
            <Empty icon="search" title="Nothing found">
              <p>IDs, subjects and host names must match as a whole. Events older than the retention time are gone.</p>
            </Empty>
          }
        >
          {(hits) => (
            <Table
              label="Results"
              rows={hits}
              keyOf={(hit) => `${hit.kind} ${hit.tenant_id} ${hit.id}`}
              hrefOf={hrefOf}
              columns={[
                { name: 'ID', width: '30%', cell: (hit) => <span class="mono">{shortId(hit.id)}</span>, card: 'lead', title: (hit) => hit.id },
                { name: 'Kind', width: '110px', cell: (hit) => kinds[hit.kind], card: 'lead push' },
                { name: 'About', cell: (hit) => (hit.about ? <Plain text={hit.about} /> : <span class="faint">–</span>), card: 'second', title: (hit) => hit.about ?? undefined },
                { name: 'Tenant', width: '18%', cell: (hit) => hit.tenant_id, card: 'second push' },
              ]}
            />
          )}
        </ListCard>
      )}
      <ApiFooter path={apiPath(q)} command={`postrider search ${quote(q)}`} />
    </Shell>
  );
}

/** /console/go/ID: the page of whatever has this ID. */
export function GoPage() {
  const { params } = useRoute();
  const id = params['id'] ?? '';
  const { route } = useLocation();
  const found = useQuery(['search', id], (signal) => search(id, signal));
  const exact = exactHit(found.data, id);
  useEffect(() => {
    if (exact) route(hrefOf(exact), true);
  }, [exact]);
  return (
    <Shell title="Find by ID" crumbs={[{ text: 'Find by ID' }]}>
      <Card>
        {found.isError ? (
          <ProblemBox error={found.error} retry={() => void found.refetch()} />
        ) : !found.data || exact ? (
          <Skeleton lines={4} />
        ) : (
          <Empty icon="search" title="Nothing has exactly this ID">
            <p class="mono break"><Plain text={id} /></p>
            <p>It does not exist, several tenants use it, or it was deleted by retention.</p>
            <LinkButton href={links.search(id)}>Search for it</LinkButton>
          </Empty>
        )}
      </Card>
      <ApiFooter path={apiPath(id)} command={`postrider search ${quote(id)}`} />
    </Shell>
  );
}

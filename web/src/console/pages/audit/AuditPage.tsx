import { useLocation } from 'preact-iso';
import { useState } from 'preact/hooks';
import type { AuditFilter } from '../../../api/cluster';
import { ApiFooter } from '../../../features/ApiFooter';
import { me } from '../../../features/me';
import { quote } from '../../../lib/curl';
import { choice, text, type Values } from '../../../lib/queryString';
import { Card } from '../../../ui/basic';
import { now } from '../../../ui/settings';
import { FilterBar, FilterChoice, FilterText, rangeChoices } from '../../../features/list/FilterBar';
import { boundsOf, useFilters } from '../../../features/list/filters';
import { links } from '../../links';
import { Shell } from '../../shell/Shell';
import { Pager } from '../../../features/list/Pager';
import { AuditList } from './AuditList';

const auditQuery = { tenant: text, actor: text, action: text, object: text, range: choice(['1h', '24h', '7d', '30d']), since: text, until: text, cursor: text };
type AuditQuery = Values<typeof auditQuery>;

export function AuditPage() {
  const { values, set, hrefWith, unknown } = useFilters(auditQuery);
  const { route } = useLocation();
  const [next, setNext] = useState<string>();
  const { cursor, ...filters } = values;
  const { actor, action, object } = values;
  const tenant = me.value?.tenant_id ?? values.tenant;
  const filter: AuditFilter = { tenant, actor, action, object, ...boundsOf(values, Math.floor(now.value / 60_000) * 60_000) };
  const given = Object.entries(filter).filter((pair): pair is [string, string] => !!pair[1]);
  const query = new URLSearchParams(given).toString();
  return (
    <Shell title="Audit log" crumbs={[{ text: 'Audit log' }]}>
      <FilterBar unknown={unknown} count={Object.values(filters).filter(Boolean).length} onClear={() => route(links.audit)}>
        {!me.value?.tenant_id && <FilterText label="Tenant" value={values.tenant} onChange={(value, isFinal) => set({ tenant: value }, !isFinal)} />}
        <FilterText label="Key or person" value={actor} placeholder="key_…" onChange={(value, isFinal) => set({ actor: value }, !isFinal)} />
        <FilterText label="Action" value={action} placeholder="endpoint.pause" onChange={(value, isFinal) => set({ action: value }, !isFinal)} />
        <FilterText label="Object" value={object} placeholder="ep_…" onChange={(value, isFinal) => set({ object: value }, !isFinal)} />
        <FilterChoice label="Time" value={values.range} choices={rangeChoices} any="All" onChange={(range) => set({ range: range as AuditQuery['range'], since: undefined, until: undefined })} />
      </FilterBar>
      <Card flush>
        <AuditList filter={filter} cursor={cursor} onPage={setNext} />
      </Card>
      <Pager cursor={cursor} next={next} hrefWith={(page) => hrefWith({ cursor: page })} />
      <ApiFooter path={query ? `/v1/audit?${query}` : '/v1/audit'} command={`postrider audit${given.map(([name, value]) => ` --${name} ${quote(value)}`).join('')}`} />
    </Shell>
  );
}

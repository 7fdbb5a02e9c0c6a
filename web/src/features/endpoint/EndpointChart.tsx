import { useQuery } from '../../api/query';
import { getStats } from '../../api/stats';
import { formatCount } from '../../lib/numbers';
import { Card, Skeleton } from '../../ui/basic';
import { now } from '../../ui/settings';
import { Traffic } from '../Traffic';

/** The last 24 hours of one endpoint. */
export function EndpointChart({ tenant, endpoint }: { tenant: string; endpoint: string }) {
  const hour = 3600_000;
  const since = Math.floor(now.value / hour) * hour - 23 * hour;
  const sinceText = new Date(since).toISOString();
  const stats = useQuery(['stats', 'hour', tenant, endpoint, sinceText], (signal) => getStats({ by: 'hour', tenant, endpoint, since: sinceText }, signal), { every: 15_000 });
  const rows = stats.data ?? [];
  const total = rows.reduce((sum, row) => sum + row.attempts, 0);
  if (stats.isError) return null;
  return (
    <Card title="Last 24 hours" actions={stats.data && <span class="muted">{formatCount(total)} attempts</span>}>
      {stats.data ? <Traffic rows={rows} since={since} until={now.value} /> : <Skeleton lines={1} height={140} />}
    </Card>
  );
}

import { Card, Empty, LinkButton } from '../../ui/basic';
import { Shell } from '../shell/Shell';

export function NotFoundPage() {
  return (
    <Shell title="Page not found" crumbs={[{ text: 'Page not found' }]}>
      <Card>
        <Empty icon="search" title="There is no such page">
          <p>The address may be mistyped, or it is from another version of postrider.</p>
          <LinkButton href="/console">Overview</LinkButton>
        </Empty>
      </Card>
    </Shell>
  );
}

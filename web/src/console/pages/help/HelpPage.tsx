import { causes, netErrors, unmatched, waiting } from '../../../lib/causes';
import { deliveryState } from '../../../lib/states';
import { Badge, Card, Fact, Facts } from '../../../ui/basic';
import { Shell } from '../../shell/Shell';

const statuses: [string, string][] = [
  ['pending', 'Waits for its first attempt.'],
  ['processing', 'A node is sending it now.'],
  ['retrying', 'An attempt failed. The next one is scheduled.'],
  ['delivered', 'The receiver responded with a 2xx status.'],
  ['dead_letter', 'It failed permanently. It can be replayed or discarded.'],
  ['canceled', 'It was canceled and is not sent.'],
];

/** The words of the console, from the tables that its pages use. */
export function HelpPage() {
  return (
    <Shell title="Help" crumbs={[{ text: 'Help' }]}>
      <div class="stack">
        <Card title="States of a delivery">
          <Facts>
            {statuses.map(([status, meaning]) => <Fact key={status} name={deliveryState(status).word}><Badge state={deliveryState(status)} /> {meaning}</Fact>)}
          </Facts>
        </Card>
        <Card title="Why a delivery becomes a dead letter">
          <Facts>{Object.entries(causes).map(([name, { label, text }]) => <Fact key={name} name={label}>{text}</Fact>)}</Facts>
        </Card>
        <Card title="What a delivery waits for">
          <Facts>{Object.entries(waiting).map(([name, text]) => <Fact key={name} name={name}>{text}</Fact>)}</Facts>
        </Card>
        <Card title="Why an endpoint does not get an event">
          <Facts>{Object.entries(unmatched).map(([name, text]) => <Fact key={name} name={name}>{text}</Fact>)}</Facts>
        </Card>
        <Card title="Errors of an attempt">
          <Facts>{Object.entries(netErrors).map(([name, each]) => <Fact key={name} name={name}><strong>{each.happened}</strong> {each.means} {each.advice}</Fact>)}</Facts>
        </Card>
        <p>The API is described at <a href="/docs" target="_blank" rel="noreferrer">/docs</a>. Every page names its API call at its foot.</p>
      </div>
    </Shell>
  );
}

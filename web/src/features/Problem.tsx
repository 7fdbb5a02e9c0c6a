import { ApiProblem } from '../api/client';
import { Button, Copy, Empty } from '../ui/basic';
import type { IconName } from '../ui/Icon';

const titles: Record<number, [IconName, string]> = {
  0: ['zap-off', 'The server cannot be reached'],
  403: ['shield', 'Not allowed'],
  404: ['search', 'Not found'],
  429: ['clock', 'Too many requests'],
  503: ['clock', 'The server is busy'],
};

/** Why something could not be loaded, and what to do. */
export function ProblemBox({ error, retry }: { error: Error; retry?: () => void }) {
  const problem = error instanceof ApiProblem ? error : undefined;
  const [icon, title] = titles[problem?.status ?? -1] ?? ['octagon-alert', 'This could not be loaded'];
  return (
    <Empty icon={icon} title={title}>
      <p>{error.message}</p>
      {problem?.status === 404 && <p>It does not exist, belongs to another tenant, or was deleted by retention.</p>}
      {problem?.requestId && (
        <p>
          Request <Copy text={problem.requestId} label="request ID" />
        </p>
      )}
      {retry && problem?.status !== 404 && problem?.status !== 403 && (
        <Button icon="refresh" onClick={retry}>
          Try again
        </Button>
      )}
    </Empty>
  );
}

/** Messages of a 422 by field: "/url" → "must be …". */
export function fieldErrors(error: unknown): Record<string, string> {
  if (!(error instanceof ApiProblem)) return {};
  return Object.fromEntries(error.errors.map(({ pointer, detail }) => [pointer.replace(/^\//, ''), detail]));
}

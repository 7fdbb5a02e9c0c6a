// Server data in components: a thin hook over query-core.
import { QueryClient, QueryObserver, type QueryKey, type QueryObserverResult } from '@tanstack/query-core';
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiProblem } from './client';

function isWorthARetry(count: number, error: Error): boolean {
  if (!(error instanceof ApiProblem)) return false;
  return count < 4 && (error.status === 0 || error.status === 429 || error.status === 503);
}

function retryDelay(count: number, error: Error): number {
  const wanted = error instanceof ApiProblem && error.retryAfter ? error.retryAfter * 1000 : 500 * 2 ** count;
  return Math.min(wanted, 30_000) * (0.8 + 0.4 * Math.random());
}

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      retry: isWorthARetry,
      retryDelay,
      networkMode: 'always',
      staleTime: 0,
      gcTime: 5 * 60_000,
    },
  },
});

/** False: nothing is asked by itself, neither by timers nor by the stream. */
export const isLive = signal(true);
/** When the newest data on the page came. */
export const dataAt = signal(0);

export interface QueryOptions {
  /** Asked again after this time, while the page is visible and live. */
  every?: number;
  enabled?: boolean;
  /** Data of the old key stays while that of the new one is on its way. */
  keepPrevious?: boolean;
}

export type QueryState<T> = QueryObserverResult<T, ApiProblem>;

export function useQuery<T>(
  key: QueryKey,
  ask: (signal: AbortSignal) => Promise<T>,
  { every, enabled = true, keepPrevious = false }: QueryOptions = {},
): QueryState<T> {
  const live = isLive.value;
  const options = {
    queryKey: key,
    queryFn: ({ signal }: { signal: AbortSignal }) => ask(signal),
    enabled,
    refetchInterval: every && live ? every : (false as const),
    refetchIntervalInBackground: false,
    ...(keepPrevious ? { placeholderData: (previous: T | undefined) => previous } : {}),
  };
  const observer = useRef<QueryObserver<T, ApiProblem> | undefined>(undefined);
  if (!observer.current) observer.current = new QueryObserver<T, ApiProblem>(queryClient, options as never);
  const [, update] = useState({});
  useEffect(() => observer.current!.subscribe((result) => {
    if (result.dataUpdatedAt > dataAt.value) dataAt.value = result.dataUpdatedAt;
    update({});
  }), []);
  useEffect(() => observer.current!.setOptions(options as never));
  return observer.current.getOptimisticResult(queryClient.defaultQueryOptions(options as never));
}

/** After a change: what is shown and may have changed is asked again. */
export function refresh(...keys: QueryKey[]): Promise<void> {
  const all = keys.length === 0 ? [undefined] : keys;
  return Promise.all(all.map((queryKey) => queryClient.invalidateQueries(queryKey ? { queryKey } : {}))).then(() => undefined);
}

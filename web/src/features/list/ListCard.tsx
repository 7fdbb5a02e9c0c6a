import type { ComponentChildren } from 'preact';
import type { QueryState } from '../../api/query';
import { ProblemBox } from '../Problem';
import { Card, Skeleton } from '../../ui/basic';

/** A list in a card: the error, lines while it loads, what to do if it is empty, or its rows. */
export function ListCard<T>({ title, list, isEmpty, empty, children }: {
  title?: string;
  list: QueryState<T>;
  isEmpty: (data: T) => boolean;
  empty: ComponentChildren;
  children: (data: T) => ComponentChildren;
}) {
  return (
    <Card flush title={title}>
      {list.isError && !list.data ? (
        <ProblemBox error={list.error} retry={() => void list.refetch()} />
      ) : !list.data ? (
        <Skeleton lines={8} height={28} />
      ) : isEmpty(list.data) ? (
        empty
      ) : (
        children(list.data)
      )}
    </Card>
  );
}

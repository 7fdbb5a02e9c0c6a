import { LinkButton } from '../../ui/basic';

/** "Older" goes on in a list; the browser's back is "newer". */
export function Pager({ cursor, next, hrefWith }: { cursor?: string; next?: string; hrefWith: (cursor: string | undefined) => string }) {
  if (!cursor && !next) return null;
  return (
    <nav class="pager row" aria-label="Pages of the list">
      {cursor && <LinkButton small icon="arrow-left" href={hrefWith(undefined)}>Newest</LinkButton>}
      {next && <LinkButton small href={hrefWith(next)}>Older</LinkButton>}
    </nav>
  );
}

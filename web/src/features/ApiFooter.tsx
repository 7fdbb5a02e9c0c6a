import { apiCurl } from '../lib/curl';
import { Button, copyText } from '../ui/basic';
import { me } from './me';

/** The API call, command and SQL behind a page. Not in the portal: its readers have a link, and no key. */
export function ApiFooter({ path, command, sql }: { path: string; command?: string; sql?: string }) {
  if (me.value?.kind === 'portal') return null;
  return (
    <footer class="api-footer">
      <span class="grow truncate">
        This page is <code>GET {path}</code>
      </span>
      <Button small kind="quiet" onClick={() => void copyText(apiCurl(location.origin, path), 'Copied as curl')}>
        Copy as curl
      </Button>
      {command && (
        <Button small kind="quiet" onClick={() => void copyText(command, 'Command copied')}>
          Copy command
        </Button>
      )}
      {sql && (
        <Button small kind="quiet" onClick={() => void copyText(sql, 'SQL copied')}>
          Copy SQL
        </Button>
      )}
    </footer>
  );
}

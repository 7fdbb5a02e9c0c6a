import { useMemo, useState } from 'preact/hooks';
import { layOut, visible } from '../lib/jsonText';
import { formatBytes } from '../lib/numbers';
import { Button, copyText } from './basic';

/** Text as it is, with a button to copy it. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} aria-label={label}>
        {visible(text)}
      </pre>
      <div class="code-actions">
        <Button small icon="copy" aria-label={`Copy ${label}`} onClick={() => void copyText(text)} />
      </div>
    </div>
  );
}

const shownBytes = 256 * 1024;
const shownLines = 5000;

/** JSON from its text: exact numbers, order and duplicates. Long ones show their beginning until asked. */
export function Json({ text, label }: { text: string; label: string }) {
  const [isAll, setAll] = useState(false);
  const isLong = text.length > shownBytes;
  const lines = useMemo(() => layOut(isAll || !isLong ? text : text.slice(0, shownBytes)), [text, isAll, isLong]);
  const shown = isAll ? lines : lines.slice(0, shownLines);
  return (
    <div class="code">
      <pre tabIndex={0} aria-label={label}>
        {shown.map((line, index) => (
          <span key={index}>
            {line.map((token, at) =>
              token.kind === 'space' || token.kind === 'mark' ? (
                visible(token.text)
              ) : (
                <span key={at} class={`json-${token.kind}`}>
                  {visible(token.text)}
                </span>
              ),
            )}
            {'\n'}
          </span>
        ))}
      </pre>
      <div class="code-actions">
        {!isAll && (isLong || lines.length > shownLines) && (
          <Button small onClick={() => setAll(true)}>
            Show all {formatBytes(text.length)}
          </Button>
        )}
        <Button small icon="copy" aria-label={`Copy ${label}`} onClick={() => void copyText(text)} />
      </div>
    </div>
  );
}

import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { Button, LinkButton } from '../../ui/basic';

/** Details beside a list. Esc closes it; the list keeps its place. */
export function SidePanel({ label, children, onClose, fullHref }: { label: string; children: ComponentChildren; onClose: () => void; fullHref: string }) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !document.querySelector('dialog[open]')) onClose();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  });
  return (
    <aside class="side-panel" aria-label={label}>
      <div class="side-panel-bar row">
        <LinkButton small kind="quiet" icon="external" href={fullHref}>
          Open page
        </LinkButton>
        <span class="grow" />
        <Button small kind="quiet" icon="x" aria-label="Close panel" onClick={onClose} />
      </div>
      <div class="side-panel-body">{children}</div>
    </aside>
  );
}

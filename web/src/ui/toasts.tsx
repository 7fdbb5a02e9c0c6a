import { signal } from '@preact/signals';
import { Icon } from './Icon';

interface Toast {
  id: number;
  text: string;
  isBad: boolean;
  action?: { label: string; run: () => void };
}

const toasts = signal<Toast[]>([]);
let nextId = 1;

function remove(id: number) {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

/** Says what happened. Errors stay until they are closed; the rest goes after six seconds. */
export function toast(text: string, options: { isBad?: boolean; action?: Toast['action'] } = {}): void {
  const id = nextId++;
  toasts.value = [...toasts.value, { id, text, isBad: options.isBad ?? false, action: options.action }].slice(-3);
  if (!options.isBad) setTimeout(() => remove(id), 6000);
}

export function toastError(error: unknown): void {
  toast(error instanceof Error ? error.message : String(error), { isBad: true });
}

export function Toasts() {
  return (
    <div class="toasts">
      {toasts.value.map((each) => (
        <div key={each.id} class={each.isBad ? 'toast bad' : 'toast'} role={each.isBad ? 'alert' : 'status'}>
          <span class="grow break">{each.text}</span>
          {each.action && (
            <button type="button" class="button small" onClick={() => {
              each.action!.run();
              remove(each.id);
            }}>
              {each.action.label}
            </button>
          )}
          <button type="button" class="button small quiet" aria-label="Close" onClick={() => remove(each.id)}>
            <Icon name="x" />
          </button>
        </div>
      ))}
    </div>
  );
}

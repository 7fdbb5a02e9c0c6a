import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Button } from '../ui/basic';
import { Dialog } from '../ui/Dialog';
import { TextField } from '../ui/Field';

interface Props {
  title: string;
  /** What will happen, in a sentence. */
  children: ComponentChildren;
  action: string;
  isDanger?: boolean;
  /** `required`: the API wants one. */
  reason?: 'required' | 'optional';
  /** Must be typed to go on. */
  typed?: string;
  isReady?: boolean;
  run: (reason: string) => Promise<unknown>;
  onClose: () => void;
}

/** Says what will happen, asks for a reason and, for large actions, for a typed number or name. */
export function Confirm({ title, children, action, isDanger, reason, typed, isReady = true, run, onClose }: Props) {
  const [text, setText] = useState('');
  const [given, setGiven] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const isTyped = !typed || given.replaceAll(',', '').trim() === typed.replaceAll(',', '');
  const hasReason = reason !== 'required' || text.trim() !== '';
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!isTyped || !hasReason || isBusy || !isReady) return;
    setBusy(true);
    setError(undefined);
    try {
      await run(text.trim());
      onClose();
    } catch (problem) {
      setError(problem instanceof Error ? problem.message : String(problem));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="stack plain-form" onSubmit={(event) => void submit(event)}>
        <div class="stack tight">{children}</div>
        {reason && (
          <TextField
            label={reason === 'required' ? 'Reason' : 'Reason (optional)'}
            value={text}
            maxLength={1000}
            hint="Recorded in the audit log."
            onInput={(event) => setText(event.currentTarget.value)}
          />
        )}
        {typed && (
          <TextField label={`Type ${typed} to confirm`} value={given} onInput={(event) => setGiven(event.currentTarget.value)} />
        )}
        {error && (
          <p class="form-error" role="alert">
            {error}
          </p>
        )}
        <div class="dialog-actions">
          <Button onClick={onClose} autofocus>
            Back
          </Button>
          <Button kind={isDanger ? 'danger' : 'primary'} type="submit" disabled={!isTyped || !hasReason || isBusy || !isReady}>
            {isBusy ? 'Working…' : action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

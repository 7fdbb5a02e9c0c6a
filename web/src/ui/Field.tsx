import type { ComponentChildren, JSX } from 'preact';
import { useId } from 'preact/hooks';

interface Props {
  label: string;
  hint?: ComponentChildren;
  error?: string;
}

export interface TextFieldProps extends Props {
  value?: string;
  name?: string;
  type?: 'text' | 'password' | 'number' | 'datetime-local';
  placeholder?: string;
  maxLength?: number;
  min?: number;
  max?: number;
  step?: number | 'any';
  disabled?: boolean;
  autofocus?: boolean;
  list?: string;
  onInput?: (event: { currentTarget: HTMLInputElement }) => void;
  onBlur?: () => void;
}

export function TextField({ label, hint, error, ...rest }: TextFieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input type="text" autocomplete="off" spellcheck={false} {...(rest as object)} id={id} class="input" aria-invalid={!!error} aria-describedby={`${id}-more`} />
      <FieldNotes id={`${id}-more`} hint={hint} error={error} />
    </div>
  );
}

export function TextArea({ label, hint, error, ...rest }: Props & JSX.IntrinsicElements['textarea']) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea spellcheck={false} {...rest} id={id} class="input" aria-invalid={!!error} aria-describedby={`${id}-more`} />
      <FieldNotes id={`${id}-more`} hint={hint} error={error} />
    </div>
  );
}

export function SelectField({ label, hint, error, children, ...rest }: Props & JSX.IntrinsicElements['select']) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select {...rest} id={id} class="input" aria-invalid={!!error} aria-describedby={`${id}-more`}>
        {children}
      </select>
      <FieldNotes id={`${id}-more`} hint={hint} error={error} />
    </div>
  );
}

export function CheckField({
  label,
  hint,
  checked,
  onChange,
}: {
  label: string;
  hint?: ComponentChildren;
  checked: boolean;
  onChange: (isChecked: boolean) => void;
}) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>
        {label}
        {hint && <span class="hint"> {hint}</span>}
      </span>
    </label>
  );
}

function FieldNotes({ id, hint, error }: { id: string; hint?: ComponentChildren; error?: string }) {
  return (
    <div id={id}>
      {error && <div class="error">{error}</div>}
      {hint && <div class="hint">{hint}</div>}
    </div>
  );
}

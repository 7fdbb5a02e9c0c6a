import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { visible } from '../../lib/jsonText';
import { Button, Notice } from '../../ui/basic';
import { Icon } from '../../ui/Icon';

/** A text filter: applied while typing after a pause, and at once on Enter. */
export function FilterText({ label, value, placeholder, onChange, width, isInvalid }: {
  label: string;
  value: string | undefined;
  placeholder?: string;
  width?: string;
  isInvalid?: boolean;
  onChange: (value: string | undefined, isFinal: boolean) => void;
}) {
  const [text, setText] = useState(value ?? '');
  useEffect(() => setText(value ?? ''), [value]);
  useEffect(() => {
    if (text === (value ?? '')) return undefined;
    const timer = setTimeout(() => onChange(text.trim() || undefined, false), 400);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label class="filter">
      <span>{label}</span>
      <input
        class="input"
        value={text}
        placeholder={placeholder}
        spellcheck={false}
        autocomplete="off"
        aria-invalid={isInvalid}
        style={width ? { width } : undefined}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') onChange(text.trim() || undefined, true);
        }}
      />
    </label>
  );
}

export function FilterChoice({ label, value, choices, onChange, any = 'Any' }: {
  label: string;
  value: string | undefined;
  choices: readonly (readonly [value: string, text: string])[];
  onChange: (value: string | undefined) => void;
  any?: string | null;
}) {
  return (
    <label class="filter">
      <span>{label}</span>
      <select class="input" value={value ?? ''} onChange={(event) => onChange(event.currentTarget.value || undefined)}>
        {any !== null && <option value="">{any}</option>}
        {choices.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export const rangeChoices = [
  ['1h', 'Last hour'],
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
  ['30d', 'Last 30 days'],
] as const;

/** Filters in a row; on narrow screens behind a button. `unknown`: parts of the address that this page cannot apply. */
export function FilterBar({ children, count, onClear, unknown = [] }: {
  children: ComponentChildren;
  count: number;
  onClear: () => void;
  unknown?: string[];
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div class={isOpen ? 'filters is-open' : 'filters'} role="search" aria-label="Filters">
      <Button class="filters-toggle" icon="search" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Filters{count > 0 && ` (${count})`}
      </Button>
      <div class="filters-fields">
        {children}
        {count > 0 && (
          <button type="button" class="button small quiet" onClick={onClear}>
            <Icon name="x" />
            Clear
          </button>
        )}
      </div>
      {unknown.length > 0 && (
        <Notice tone="warn" icon="triangle-alert">
          <span class="break">Not applied, because this page does not know it: {unknown.map((each) => visible(each.slice(0, 100))).join(', ')}</span>
        </Notice>
      )}
    </div>
  );
}

// Filters of a page in its address. A page declares its fields once; unknown values are dropped, defaults are left out.

export interface TextField {
  kind: 'text';
}
export interface ChoiceField<Value extends string = string> {
  kind: 'choice';
  choices: readonly Value[];
  default?: Value;
}
export type Field = TextField | ChoiceField;
export type Fields = Record<string, Field>;

type ValueOf<F extends Field> = F extends ChoiceField<infer Value>
  ? F extends { default: string }
    ? Value
    : Value | undefined
  : string | undefined;
export type Values<F extends Fields> = { [Name in keyof F]: ValueOf<F[Name]> };

export const text: TextField = { kind: 'text' };
export function choice<const Value extends string>(choices: readonly Value[]): ChoiceField<Value> {
  return { kind: 'choice', choices };
}
export function choiceOr<const Value extends string>(
  choices: readonly Value[],
  fallback: Value,
): ChoiceField<Value> & { default: Value } {
  return { kind: 'choice', choices, default: fallback };
}

export function readQuery<F extends Fields>(fields: F, search: string | Record<string, string>): Values<F> {
  const given = typeof search === 'string' ? Object.fromEntries(new URLSearchParams(search)) : search;
  const values: Record<string, string | undefined> = {};
  for (const [name, field] of Object.entries(fields)) {
    const value = given[name];
    if (field.kind === 'text') values[name] = value || undefined;
    else values[name] = value && field.choices.includes(value) ? value : field.default;
  }
  return values as Values<F>;
}

/** What an address asks for and this page does not know: said, because a dropped filter shows more than was asked for. */
export function unknownValues(fields: Fields, search: string): string[] {
  return [...new URLSearchParams(search)]
    .filter(([name, value]) => {
      const field = fields[name];
      return !field || (field.kind === 'choice' && value !== '' && !field.choices.includes(value));
    })
    .map(([name, value]) => `${name}=${value}`);
}

/** "?status=retrying&tenant=acme", or "" without any. In the order of the declaration, so equal filters are equal text. */
export function writeQuery<F extends Fields>(fields: F, values: Partial<Values<F>>): string {
  const parameters = new URLSearchParams();
  for (const [name, field] of Object.entries(fields)) {
    const value = (values as Record<string, string | undefined>)[name];
    if (!value || (field.kind === 'choice' && value === field.default)) continue;
    parameters.set(name, value);
  }
  const written = parameters.toString();
  return written ? `?${written}` : '';
}

// JSON as text: numbers, key order, duplicate keys and escapes are shown exactly as they were sent. Nothing is parsed into
// values and written again.

export type TokenKind = 'key' | 'string' | 'number' | 'word' | 'mark' | 'space';

export interface Token {
  kind: TokenKind;
  text: string;
}

const depthMax = 100;

/** Tokens of a JSON text, without white space; nothing if it is not JSON. Linear. */
export function scan(text: string): Token[] | undefined {
  const tokens: Token[] = [];
  const pattern = /\s+|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]/suy;
  let at = 0;
  while (at < text.length) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (!match) return undefined;
    at = pattern.lastIndex;
    const found = match[0];
    const first = found[0]!;
    if (/\s/.test(first)) continue;
    if (first === '"') tokens.push({ kind: 'string', text: found });
    else if (/[-\d]/.test(first)) tokens.push({ kind: 'number', text: found });
    else if (/[{}[\],:]/.test(first)) tokens.push({ kind: 'mark', text: found });
    else tokens.push({ kind: 'word', text: found });
  }
  for (let i = 0; i + 1 < tokens.length; ++i)
    if (tokens[i]!.kind === 'string' && tokens[i + 1]!.text === ':') tokens[i]!.kind = 'key';
  return tokens;
}

/** The same JSON, indented by two spaces, as lines of tokens. Text that is not JSON becomes plain lines. */
export function layOut(text: string): Token[][] {
  const tokens = scan(text);
  if (!tokens) return text.split('\n').map((line) => [{ kind: 'space', text: line }]);
  const lines: Token[][] = [];
  let line: Token[] = [];
  let depth = 0;
  const breakLine = () => {
    if (line.length > 0) lines.push(line);
    line = depth > 0 ? [{ kind: 'space', text: '  '.repeat(Math.min(depth, depthMax)) }] : [];
  };
  tokens.forEach((token, index) => {
    const next = tokens[index + 1]?.text;
    if (token.text === '}' || token.text === ']') {
      const opener = tokens[index - 1]?.text;
      depth = Math.max(0, depth - 1);
      if (opener !== '{' && opener !== '[') breakLine();
      line.push(token);
      return;
    }
    line.push(token);
    if (token.text === ':') line.push({ kind: 'space', text: ' ' });
    else if (token.text === ',') breakLine();
    else if (token.text === '{' || token.text === '[') {
      depth += 1;
      if (next !== '}' && next !== ']') breakLine();
    }
  });
  if (line.length > 0) lines.push(line);
  return lines;
}

/** The text of a member's value in a JSON object, exactly: memberText('{"a":1.0}', 'a') is '1.0'. The last one counts. */
export function memberText(text: string, name: string): string | undefined {
  let at = skipSpace(text, 0);
  if (text[at] !== '{') return undefined;
  at = skipSpace(text, at + 1);
  let found: string | undefined;
  while (at < text.length && text[at] === '"') {
    const keyEnd = stringEnd(text, at);
    const key = text.slice(at, keyEnd);
    at = skipSpace(text, keyEnd);
    if (text[at] !== ':') return found;
    const start = skipSpace(text, at + 1);
    const end = valueEnd(text, start);
    if (JSON.parse(key) === name) found = text.slice(start, end);
    at = skipSpace(text, end);
    if (text[at] !== ',') break;
    at = skipSpace(text, at + 1);
  }
  return found;
}

/** The texts of an array's elements. */
export function elementTexts(text: string): string[] {
  const elements: string[] = [];
  let at = skipSpace(text, 0);
  if (text[at] !== '[') return elements;
  at = skipSpace(text, at + 1);
  while (at < text.length && text[at] !== ']') {
    const end = valueEnd(text, at);
    elements.push(text.slice(at, end));
    at = skipSpace(text, end);
    if (text[at] !== ',') break;
    at = skipSpace(text, at + 1);
  }
  return elements;
}

function skipSpace(text: string, at: number): number {
  while (at < text.length && ' \t\r\n'.includes(text[at]!)) ++at;
  return at;
}

function stringEnd(text: string, at: number): number {
  for (let i = at + 1; i < text.length; ++i) {
    if (text[i] === '\\') ++i;
    else if (text[i] === '"') return i + 1;
  }
  return text.length;
}

function valueEnd(text: string, at: number): number {
  if (text[at] === '"') return stringEnd(text, at);
  if (text[at] !== '{' && text[at] !== '[') {
    while (at < text.length && !',}] \t\r\n'.includes(text[at]!)) ++at;
    return at;
  }
  let depth = 0;
  for (let i = at; i < text.length; ++i) {
    const c = text[i]!;
    if (c === '"') i = stringEnd(text, i) - 1;
    else if (c === '{' || c === '[') ++depth;
    else if ((c === '}' || c === ']') && --depth === 0) return i + 1;
  }
  return text.length;
}

/** Control and bidirectional characters made visible: they could hide or reorder what is shown. */
export function visible(text: string): string {
  return text.replace(
    // eslint-disable-next-line no-control-regex
    /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

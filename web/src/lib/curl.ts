/** Quotes for a POSIX shell: 'it'\''s'. */
export function quote(text: string): string {
  if (/^[A-Za-z0-9_./:=@%+-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

export interface CurlRequest {
  method?: string;
  url: string;
  headers?: Record<string, string>;
  body?: string;
}

/** One header a line. The body is a quoted argument, so every byte of it arrives. */
export function toCurl(request: CurlRequest): string {
  const lines = [`curl -sS ${request.method && request.method !== 'GET' ? `-X ${request.method} ` : ''}${quote(request.url)}`];
  for (const [name, value] of Object.entries(request.headers ?? {})) lines.push(`  -H ${quote(`${name}: ${value}`)}`);
  if (request.body !== undefined) lines.push(`  --data-binary ${quote(request.body)}`);
  return lines.join(' \\\n');
}

/** A call of the API; the key is a variable, so that it is in no shell history. */
export function apiCurl(origin: string, path: string, method = 'GET', body?: unknown): string {
  return toCurl({
    method,
    url: origin + path,
    headers: {
      authorization: 'Bearer $POSTRIDER_KEY',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).replace(`'authorization: Bearer $POSTRIDER_KEY'`, '"authorization: Bearer $POSTRIDER_KEY"');
}

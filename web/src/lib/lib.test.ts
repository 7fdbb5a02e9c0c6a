import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { causes, explainError, explainStatus, netErrors, unmatched } from './causes';
import { apiCurl, quote, toCurl } from './curl';
import { hostOf, shortId } from './ids';
import { elementTexts, layOut, memberText, visible } from './jsonText';
import { countOf, formatBytes, formatCapped, formatCount, formatShare } from './numbers';
import { isReused, segmentsOf } from './phases';
import { choice, choiceOr, readQuery, text, unknownValues, writeQuery } from './queryString';
import { endpointChips } from './states';
import { formatAge, formatCountdown, formatMicroseconds, formatTime, longSpan } from './time';
import { execFileSync } from 'node:child_process';

const repository = path.resolve(__dirname, '../../..');
const shown = (json: string) => layOut(json).map((line) => line.map((token) => token.text).join('')).join('\n');

describe('jsonText', () => {
  const exact = '{"n":12345678901234567890.10,"a":1,"a":2,"e":"\\u00e9\\/"}';
  test('keeps numbers, order, duplicates and escapes', () => {
    expect(shown(exact)).toBe('{\n  "n": 12345678901234567890.10,\n  "a": 1,\n  "a": 2,\n  "e": "\\u00e9\\/"\n}');
  });
  test('keeps empty containers on one line', () => expect(shown('{"a":[],"b":{}}')).toBe('{\n  "a": [],\n  "b": {}\n}'));
  test('shows what is not JSON as it is', () => expect(shown('<html>\n"a')).toBe('<html>\n"a'));
  test('finds the exact text of a member', () => {
    expect(memberText('{"x":{"data":1}, "data" : {"n":1.0} ,"y":"}"}', 'data')).toBe('{"n":1.0}');
    expect(memberText('{"data":"a\\"b"}', 'data')).toBe('"a\\"b"');
    expect(memberText('{"x":1}', 'data')).toBeUndefined();
    expect(memberText('[1]', 'data')).toBeUndefined();
  });
  test('splits arrays', () => expect(elementTexts('[1.0, {"a":[2,3]}, "]"]')).toEqual(['1.0', '{"a":[2,3]}', '"]"']));
  test('is linear for deep nesting', () => {
    const deep = '['.repeat(100_000);
    expect(layOut(deep).length).toBeGreaterThan(99_999);
    expect(memberText(`{"data":${deep}`, 'data')).toBe(deep);
  });
  test('shows characters that hide or reorder others', () => {
    expect(visible('a\u202eb\u0000c\ufeff')).toBe('a\\u202eb\\u0000c\\ufeff');
    expect(visible('tab\tand\nline é 💥')).toBe('tab\tand\nline é 💥');
  });
});

describe('curl', () => {
  test('quotes for the shell', () => {
    expect(quote("it's $(id)")).toBe(`'it'\\''s $(id)'`);
    expect(quote('plain-1.0')).toBe('plain-1.0');
  });
  test('every byte of the body arrives', () => {
    for (const body of ["it's", 'a\nb', '💥', '$(touch x)', '\\', '`id`', 'x'.repeat(100_000)]) {
      const command = toCurl({ url: 'http://h/', body }).replace('curl -sS', 'printf %s').replace(/http:\/\/h\/ \\\n  --data-binary /, '');
      expect(execFileSync('bash', ['-c', command], { encoding: 'utf8' })).toBe(body);
    }
  });
  test('keeps the key out of the command', () => {
    expect(apiCurl('http://h', '/v1/me')).toBe('curl -sS http://h/v1/me \\\n  -H "authorization: Bearer $POSTRIDER_KEY"');
  });
});

describe('causes', () => {
  const document = JSON.parse(
    execFileSync('python3', ['tools/embed_openapi.py', 'src/postrider/api/openapi', '0', '-'], { cwd: repository, encoding: 'utf8', maxBuffer: 64 << 20 }),
  );
  const schemas = document.components.schemas;
  test('every network error has words', () => {
    const header = fs.readFileSync(path.join(repository, 'src/postrider/http/net_error.hpp'), 'utf8');
    const names = /enum class NetError[^{]*{([^}]*)}/.exec(header)![1]!.replace(/\/\/.*/g, '').split(',').map((name) => name.trim()).filter(Boolean);
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !netErrors[name])).toEqual([]);
  });
  test('every cause and every reason has words', () => {
    expect(schemas.Cause.enum.filter((name: string) => !causes[name])).toEqual([]);
    const reasons = schemas.EventDetail.properties.unmatched_endpoints.items.properties.reason.enum;
    expect(reasons.filter((name: string) => !unmatched[name])).toEqual([]);
  });
  test('every status has words', () => {
    for (let code = 200; code < 600; ++code) expect(explainStatus(code).happened).toContain(String(code));
    expect(explainError('http_500', 404)!.happened).toContain('404 Not Found');
    expect(explainError('something_new', null)!.happened).toContain('something_new');
  });
});

describe('times', () => {
  const now = Date.parse('2026-04-08T10:00:00Z');
  test('ages', () => {
    expect(formatAge(now - 500, now)).toBe('now');
    expect(formatAge(now - 12_000, now)).toBe('12 s ago');
    expect(formatAge(now - 3 * 3600_000, now)).toBe('3 h ago');
    expect(formatAge(now + 61_000, now)).toBe('in 1 min');
  });
  test('spans', () => {
    expect(longSpan(131_000)).toBe('2 min 11 s');
    expect(longSpan(33 * 3600_000)).toBe('1 d 9 h');
    expect(longSpan(400)).toBe('400 ms');
    expect(formatCountdown(42_000)).toBe('0:42');
    expect(formatCountdown(3_723_000)).toBe('1:02:03');
    expect(formatCountdown(-5)).toBe('0:00');
    expect(formatMicroseconds(9_930_000)).toBe('9.93 s');
    expect(formatMicroseconds(3140)).toBe('3.1 ms');
  });
  test('the zone changes what is shown', () => {
    expect(formatTime(Date.parse('2026-04-08T09:04:05Z'), 'utc', now)).toBe('8 Apr, 09:04:05');
    expect(formatTime(Date.parse('2025-04-08T09:04:05Z'), 'utc', now)).toContain('2025');
  });
});

describe('numbers', () => {
  test('exact and grouped', () => {
    expect(formatCount(12345)).toBe('12,345');
    expect(formatCapped(10000, true)).toBe('10,000+');
    expect(countOf(1, 'delivery', 'deliveries')).toBe('1 delivery');
    expect(formatBytes(1536)).toBe('1.5 KiB');
  });
  test('shares never hide an exception', () => {
    expect(formatShare(99_999, 100_000)).toBe('99.9 %');
    expect(formatShare(1, 100_000)).toBe('0.1 %');
    expect(formatShare(0, 0)).toBe('–');
  });
});

describe('queryString', () => {
  const fields = { tenant: text, status: choice(['a', 'b']), range: choiceOr(['1h', '24h'], '24h') };
  test('reads what it writes, and leaves defaults out', () => {
    const values = { tenant: 'ä & b', status: 'a', range: '1h' } as const;
    expect(readQuery(fields, writeQuery(fields, values))).toEqual(values);
    expect(writeQuery(fields, { range: '24h' })).toBe('');
  });
  test('drops unknown values', () => {
    expect(readQuery(fields, '?status=x&range=9y&other=1')).toEqual({ tenant: undefined, status: undefined, range: '24h' });
  });
  test('names what it does not know', () => {
    const fields = { status: choice(['a', 'b']), q: text };
    expect(unknownValues(fields, '?status=c&q=x&other=1')).toEqual(['status=c', 'other=1']);
    expect(unknownValues(fields, '?status=a&q=%3Cb%3E')).toEqual([]);
  });
});

describe('phases', () => {
  test('segments add up to the total', () => {
    const phases = { lookup_us: 100, connect_us: 200, tls_us: 300, first_byte_us: 4000, total_us: 5000 };
    expect(segmentsOf(phases).reduce((sum, segment) => sum + segment.us, 0)).toBe(5000);
    expect(isReused(phases)).toBe(false);
    const bare = { lookup_us: null, connect_us: null, tls_us: null, first_byte_us: 10, total_us: 20 };
    expect(isReused(bare)).toBe(true);
    expect([isReused(bare, false), isReused(bare, null), isReused(phases, true)]).toEqual([false, false, true]);
  });
  test('an attempt that failed early has the rest as one segment', () => {
    const segments = segmentsOf({ lookup_us: 100, connect_us: null, tls_us: null, first_byte_us: null, total_us: 900 });
    expect(segments.map((segment) => segment.us)).toEqual([100, 800]);
  });
});

describe('states and ids', () => {
  test('the most important state comes first', () => {
    expect(endpointChips({ status: 'paused', health: 'failing', breaker: 'open', held_reason: null }).map((state) => state.word)).toEqual(['Paused', 'Breaker open', 'Failing']);
    expect(endpointChips({ status: 'active', health: 'healthy', breaker: 'closed', held_reason: null })[0]!.word).toBe('Active');
  });
  test('ids are shortened in the middle', () => {
    expect(shortId('dlv_01a10000000000000000000000003752')).toBe('dlv_01a1…3752');
    expect(shortId('billing')).toBe('billing');
    expect(hostOf('not a url')).toBe('not a url');
  });
});

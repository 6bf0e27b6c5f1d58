/** Texts of documents as values (`docs/contract/automation.md#the-fleet-as-a-file`): read in pieces as in one, and bounded. */
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { silentLogger } from '../../src/kernel/logger.js';
import { createTexts, textsInPlace } from '../../src/transport/rest/fleet-file/texts.js';
import { readYaml } from '../../src/transport/rest/fleet-file/yaml-text.js';

const names = ['nodes', 'chains'];
const keys = { known: ['svc', 'set', 'policies', ...names], names };
const inOnePiece = Number.POSITIVE_INFINITY;
const text = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.constantFrom(
    '<<',
    '',
    '- a',
    'a: b',
    '#',
    '*a',
    '&a',
    "'",
    '"',
    '{',
    'true',
    '1',
    '~',
    'a\nb',
    'é',
    'e\u0301',
    '😀',
  ),
);
// `yaml` writes this key as a merge key, which is refused.
const key = text.filter((one) => one !== '__proto__' && one !== '<<');
const value = fc.letrec((tie) => ({
  any: fc.oneof({ depthSize: 'small' }, text, fc.integer(), fc.boolean(), fc.constant(null), tie('map'), tie('list')),
  map: fc.dictionary(key, tie('any'), { maxKeys: 4 }),
  list: fc.array(tie('any'), { maxLength: 4 }),
}));
/** Keys that are equal after NFC are refused, and names that differ only by case. */
const once = (record: object): boolean =>
  new Set(Object.keys(record).map((one) => one.normalize('NFC').toLowerCase())).size === Object.keys(record).length;
const document = fc
  .record({
    nodes: fc.dictionary(key, value.map.filter(once), { maxKeys: 12 }).filter(once),
    policies: fc.array(value.map.filter(once), { maxLength: 12 }),
    set: text,
  })
  .filter((one) => Object.values(one.nodes).every(once));
const styles = fc.constantFrom<(value: unknown) => string>(
  (one) => stringify(one, { version: '1.2', lineWidth: 0, aliasDuplicateObjects: false }),
  (one) => stringify(one, { version: '1.2', collectionStyle: 'flow', aliasDuplicateObjects: false }),
  (one) => JSON.stringify(one),
  (one) => JSON.stringify(one, null, 2),
);

describe('a text', () => {
  it('is the value that was written, read in pieces of any size as in one', async () => {
    await fc.assert(
      fc.asyncProperty(document, styles, fc.integer({ min: 1, max: 40 }), async (given, write, pieceTokens) => {
        const whole = readYaml(write(given), names, [], inOnePiece);
        const pieces = readYaml(write(given), names, [], pieceTokens);
        expect(pieces.mistakes).toEqual(whole.mistakes);
        const nested = whole.mistakes.filter((one) => !one.includes('expected each key once'));
        expect(nested).toEqual([]);
        if (whole.mistakes.length === 0) {
          expect(whole.value).toEqual(given);
          expect(pieces.value).toEqual(given);
          expect((await textsInPlace.read(JSON.stringify(given), keys)).value).toEqual(given);
        }
      }),
      { numRuns: 75 },
    );
  });

  it('leaves nothing at a signal that lives longer, when a thread reads it', async () => {
    const texts = createTexts(silentLogger);
    const given = { nodes: Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`node-${at}`, {}])) };
    const any = vi.spyOn(AbortSignal, 'any');
    for (let reads = 0; reads < 2; reads += 1) {
      expect((await texts.read(stringify(given), keys)).value).toEqual(given);
    }
    const joined = any.mock.calls.flatMap(([signals]) => [...signals]);
    any.mockRestore();
    texts.close();
    expect(joined).not.toEqual([]);
    expect(new Set(joined).size).toBe(joined.length);
  });

  it('may have many long sections, read in pieces', () => {
    const sections = Array.from({ length: 4 }, (_, index) => [
      `section-${index}`,
      Object.fromEntries(Array.from({ length: 60 }, (_, entry) => [`e${entry}`, { labels: { a: 'x'.repeat(30) } }])),
    ]);
    const given = { svc: 1, ...Object.fromEntries(sections) } as unknown;
    for (const collectionStyle of ['block', 'flow'] as const) {
      const written = stringify(given, { version: '1.2', lineWidth: 0, collectionStyle });
      for (const pieceTokens of [1, 50, 400]) {
        expect(readYaml(written, names, [], pieceTokens)).toEqual({ value: given, mistakes: [] });
      }
    }
  });

  it('that is broken has the same first mistake in pieces as in one, and never fails otherwise', () => {
    const broken = fc
      .tuple(
        document,
        styles,
        fc.nat(),
        fc.nat(20),
        fc.constantFrom('', ',', '}', ']', ':', '\n', '\t', '&a ', '*a ', '- ', '? ', '"', '%'),
      )
      .map(([given, write, at, drop, put]) => {
        const valid = write(given);
        const place = at % (valid.length + 1);
        return valid.slice(0, place) + put + valid.slice(place + drop);
      });
    fc.assert(
      fc.property(broken, fc.integer({ min: 1, max: 40 }), (given, pieceTokens) => {
        const whole = readYaml(given, names, [], inOnePiece);
        const pieces = readYaml(given, names, [], pieceTokens);
        expect(pieces.mistakes.length > 0).toBe(whole.mistakes.length > 0);
        if (whole.mistakes.length === 0) expect(pieces.value).toEqual(whole.value);
      }),
      { numRuns: 150 },
    );
  });

  it('has a quoted << as a text, and no merge key', async () => {
    const quoted = { nodes: { a: { '<<': '1' } } };
    for (const written of [JSON.stringify(quoted), 'nodes:\n  a: {"<<": "1"}\n']) {
      expect(await textsInPlace.read(written, keys)).toEqual({ value: quoted, mistakes: [] });
    }
    expect((await textsInPlace.read('nodes:\n  a: {<<: 1}\n', keys)).mistakes).toEqual([
      '2:7 nodes.a.<<: expected no merge key',
    ]);
  });

  it('tells mistakes where they stand, in pieces too', () => {
    const lines = Array.from({ length: 200 }, (_, index) => `  n${index}: {labels: {a: 1}}\n`).join('');
    const asked = [
      { at: ['nodes', 'n150', 'labels', 'a'], message: 'no' },
      { at: ['nodes', 'n3', 'none', 'deeper'], message: 'missing' },
      { at: ['nodes', 'n199', 'labels'], message: 'key', ofKey: true as const },
    ];
    expect(readYaml(`nodes:\n${lines}`, names, asked, 50).mistakes).toEqual([
      '5:7 nodes.n3.none.deeper: missing',
      '152:22 nodes.n150.labels.a: no',
      '201:10 nodes.n199.labels: key',
    ]);
  });

  it.each([
    ['nested lists', (n: number) => `a: ${'['.repeat(n)}${']'.repeat(n)}`],
    ['nested mappings', (n: number) => `a: ${'{a: '.repeat(n)}1${'}'.repeat(n)}`],
    ['lists in lines', (n: number) => `a:\n  ${'- '.repeat(n)}1`],
    ['keys in lines', (n: number) => `a:\n${Array.from({ length: n }, (_, i) => `${' '.repeat(i + 1)}a:\n`).join('')}`],
    ['JSON', (n: number) => `{"a": ${'['.repeat(n)}${']'.repeat(n)}}`],
  ])('may nest 64 deep and no deeper: %s', async (_, nested) => {
    const { mistakes } = await textsInPlace.read(nested(63), keys);
    expect(mistakes).toEqual([]);
    for (const deep of [64, 2_000]) {
      const { mistakes: refused } = await textsInPlace.read(nested(deep), keys);
      expect(refused).toEqual([expect.stringMatching(/^\d+:\d+ \S+: expected at most 64 mappings and lists inside/)]);
    }
  });

  it('may nest no deeper by aliases, and have a thousand of them', async () => {
    const levels = Array.from(
      { length: 70 },
      (_, index) => `k${index}: &a${index} [${index > 0 ? `*a${index - 1}` : ''}]\n`,
    );
    expect((await textsInPlace.read(levels.join(''), keys)).mistakes[0]).toContain('expected at most 64 mappings');
    const aliases = (n: number): string => `policies: [&a 1${', *a'.repeat(n)}]\n`;
    expect((await textsInPlace.read(aliases(1_000), keys)).mistakes).toEqual([]);
    expect((await textsInPlace.read(aliases(1_001), keys)).mistakes).toEqual([
      expect.stringMatching(/^1:\d+ document: expected at most 1000 aliases$/),
    ]);
  });

  it('reads what aliases in a piece refer to before it', () => {
    const text =
      'set: &s 1\nnodes: &n {a: &a {x: *s}}\npolicies: [*a, *n, *s, &s 2, *s, *s, *a]\nchains: {a: *s, b: *n, c: *a}\n';
    const whole = readYaml(text, names, [], inOnePiece);
    expect(whole.mistakes).toEqual([]);
    for (let pieceTokens = 1; pieceTokens < 30; pieceTokens += 1) {
      expect(readYaml(text, names, [], pieceTokens)).toEqual(whole);
    }
    const loop = 'policies: [1, &l [*l], 2, 3]\nnodes: {a: *l}\n';
    expect(readYaml(loop, names, [], 1)).toEqual({
      value: undefined,
      mistakes: [expect.stringContaining('1:19 policies[1][0]: expected no loop')],
    });
  });

  it('takes an alias for the anchor of its name that stands last before it', async () => {
    const { value: read } = await textsInPlace.read('policies: [&a 1, &b [*a], &a 2, *b, *a]\n', keys);
    expect(read).toEqual({ policies: [1, [1], 2, [1], 2] });
  });

  it('of more than 1 MiB of JSON has its mistakes told by path', async () => {
    const long = `{"nodes": {"a": {}, "A": {}, "b": {"x": "${'x'.repeat(2 ** 20)}", "x": 1}}}`;
    expect((await textsInPlace.read(long, keys)).mistakes).toEqual([
      'nodes.A: expected each key once, "a" is the same',
      'nodes.b.x: expected each key once',
    ]);
    const fine = `{"nodes": {"b": {"x": "${'x'.repeat(2 ** 20)}"}}}`;
    expect(await textsInPlace.sentences(fine, [{ at: ['nodes', 'b', 'x'], message: 'no' }])).toEqual(['nodes.b.x: no']);
  });

  it('has no entry that is larger than a request may be', async () => {
    const labels = Object.fromEntries(Array.from({ length: 2_049 }, (_, index) => [`k${index}`, '1']));
    const short = JSON.stringify({ nodes: { a: { labels } } });
    expect((await textsInPlace.read(short, keys)).mistakes).toEqual([
      expect.stringMatching(/^1:\d+ nodes\.a: expected at most 32768 values, and 2048 in one list or mapping$/),
    ]);
  });
});

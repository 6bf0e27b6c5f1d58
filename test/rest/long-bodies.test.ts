/**
 * Bodies with a long document, which are read in slices: the document is what was sent, and what stands beside it is as strict
 * and as small as any other body (`docs/contract/automation.md#the-fleet-as-a-file`, the limits).
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());

type Content = 'application/json' | 'application/yaml';
async function planned(body: Buffer | string, content: Content = 'application/json'): Promise<[number, JsonData]> {
  const answer = await rest.call('POST', '/api/fleet/plan', { body, headers: { 'content-type': content } });
  return [answer.statusCode, answer.json()];
}

const piece = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
  fc.constantFrom('"', '\\', '\n', '\\"', 'é', '\u{1F600}', '\u2028', '\t', '\u0001'),
);
/** Escapes what JSON need not escape, as some writers do. */
const escaped = (json: string): string =>
  json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

test('a document is what was sent, as JSON with any escapes and as YAML', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { minLength: 1 }),
      fc.nat(40),
      fc.constantFrom('', '\ufeff'),
      async (pieces, pad, bom) => {
        // The padding decides what the border of a slice cuts.
        const unit = pieces.join('');
        const value = ' '.repeat(pad) + [...unit.repeat(Math.ceil(1_900 / unit.length))].slice(0, 950).join('');
        const descriptions = Array.from({ length: 350 }, (_, index) => `${index} ${value}`);
        const nodes = Object.fromEntries(descriptions.map((description, index) => [`n${index}`, { description }]));
        const document = JSON.stringify({ svc: 1, nodes });
        const inEnvelope = JSON.stringify({ prune: false, document });
        for (const [body, content] of [
          [bom + inEnvelope, 'application/json'],
          [escaped(inEnvelope), 'application/json'],
          [bom + document, 'application/yaml'],
        ] as const) {
          const [status, { data, error }] = await planned(body, content);
          expect([status, error]).toEqual([200, null]);
          const after = (step: JsonData) => step.changes.find(({ path }: JsonData) => path === 'description').after;
          expect(data.steps.map(after)).toEqual(descriptions);
        }
      },
    ),
    { numRuns: 2 },
  );
});

const long = 'x'.repeat(300_000);
test.each<[string, Buffer | string, number, string]>([
  ['that ends within its document', `{"document": "${long}`, 400, 'body: expected well-formed JSON'],
  ['that ends within an escape', `{"document": "${long}\\u00`, 400, 'body: expected well-formed JSON'],
  ['with a line break in a string', `{"document": "${long}\n"}`, 400, 'body: expected well-formed JSON'],
  ['with an escape that is none', `{"document": "${long}\\u12"}`, 400, 'body: expected well-formed JSON'],
  ['with something behind it', `{"document": "${long}"} x`, 400, 'body: expected well-formed JSON'],
  ['that is no UTF-8', Buffer.from(`{"document": "${long}\u00ff"}`, 'latin1'), 400, 'body: expected UTF-8'],
  [
    'with its document twice',
    `{"document": "${long}", "document": ""}`,
    400,
    'document: expected each key once, found it twice',
  ],
  ['with an unknown field', `{"document": "${long}", "x": 1}`, 400, 'x: not a field of this request'],
  [
    'with another long text',
    `{"x": "${long}", "document": ""}`,
    400,
    'body: expected no text of over 65536 bytes but the document',
  ],
  ['that is a text', `"${long}"`, 400, 'body: expected no text of over 65536 bytes but the document'],
  [
    'with two long texts',
    `{"document": "${long}", "x": "${long}"}`,
    413,
    'body: expected at most 262144 bytes beside the document',
  ],
  [
    'of many values',
    `{"document": [${'{},'.repeat(200_000)}{}]}`,
    413,
    'body: expected at most 262144 bytes beside the document',
  ],
  [
    'of many short texts',
    `{"document": [${'"",'.repeat(200_000)}""]}`,
    413,
    'body: expected at most 262144 bytes beside the document',
  ],
])('a long body %s is refused', async (_, body, status, sentence) => {
  const [answered, { error }] = await planned(body);
  expect([answered, error]).toEqual([status, expect.stringContaining(sentence)]);
});

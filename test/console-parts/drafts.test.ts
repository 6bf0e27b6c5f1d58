/** Drafts of forms, and what stands at a path of their values. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readDraft } from '../../console/src/shared/forms/draft-shape.js';
import { valueIn } from '../../console/src/shared/forms/fields.js';

const pattern = {
  name: '',
  enabled: true,
  target: { upstream_id: '' },
  hops: [{ node_id: '', server_names: [] as string[] }],
};

describe('a kept draft', () => {
  test('given what a form of this shape holds, it is read as it was', () => {
    const hop = fc.record({ node_id: fc.string(), server_names: fc.array(fc.string()) });
    // A target is of one of two shapes.
    const target = fc.oneof(fc.record({ upstream_id: fc.string() }), fc.record({ endpoint: fc.string() }));
    const values = fc.record({ name: fc.string(), enabled: fc.boolean(), target, hops: fc.array(hop) });
    fc.assert(
      fc.property(values, (draft) => {
        expect(readDraft(JSON.stringify(draft), pattern)).toEqual(draft);
      }),
    );
  });

  test.each([
    ['nothing', null],
    ['no JSON', '{'],
    ['no object', 'null'],
    ['a field that is missing', JSON.stringify({ name: '', enabled: true, target: {} })],
    ['a field of another type', JSON.stringify({ ...pattern, name: 7 })],
    ['an entry of another shape', JSON.stringify({ ...pattern, hops: [{ node_id: '' }] })],
  ])('given %s, it is no draft', (_what, kept) => {
    expect(readDraft(kept, pattern)).toBeUndefined();
  });
});

test('given a path, its value is found, and nothing where there is none', () => {
  const values = { hops: [{ node_id: 'a' }], target: null };
  expect(valueIn(values, 'hops.0.node_id')).toBe('a');
  expect(valueIn(values, 'hops.1.node_id')).toBeUndefined();
  expect(valueIn(values, 'target.endpoint')).toBeUndefined();
});

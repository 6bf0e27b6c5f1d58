/** Which field of a form the service means, and what a form sends (`docs/contract/console.md#rules`). */
import { describe, expect, test } from 'vitest';
import { bodyOf, newHop, valuesOf } from '../../console/src/chains/chain-values.js';
import { overrideChanges } from '../../console/src/settings/settings.js';
import { changedLabels, changedOf, closestField, fieldOf } from '../../console/src/shared/forms/fields.js';

describe('the closest field', () => {
  const fields = ['name', 'hops', 'hops.*.node_id', 'hops.*', 'tls', 'tls.server_name'];

  test.each([
    ['name', 'name'],
    ['hops[1].node_id', 'hops.1.node_id'],
    ['hops[12].listen_port', 'hops.12'],
    ['hops', 'hops'],
    ['tls.server_name', 'tls.server_name'],
    ['tls.spki_pins_sha256[0]', 'tls'],
    ['tlsx', undefined],
    ['names', undefined],
    ['', undefined],
  ])('to %s is %s', (path, field) => expect(closestField(path, fields)).toBe(field));

  test('is the one that a refusal begins with', () => {
    expect(fieldOf('hops[0].node_id: no such node', fields)).toBe('hops.0.node_id');
    expect(fieldOf('the chain is disabled: enable it first', fields)).toBeUndefined();
    expect(fieldOf('name is taken', fields)).toBeUndefined();
  });
});

test('a form sends the fields that differ, lists as a whole', () => {
  const before = { name: 'a', hops: [{ port: 1 }], note: null as string | null };
  expect(changedOf({ ...before }, before)).toEqual({});
  expect(changedOf({ ...before, hops: [{ port: 2 }] }, before)).toEqual({ hops: [{ port: 2 }] });
  expect(changedOf({ ...before, note: '' }, before)).toEqual({ note: '' });
});

test('what would be lost is called by its labels, as exactly as they are', () => {
  const labels = { name: 'Name', hops: 'Hops', 'hops.*.port': 'Port', tls: 'TLS', 'tls.server_name': 'Server name' };
  const before = { name: 'a', hops: [{ port: 1 }], tls: null };
  expect(changedLabels({ ...before }, before, labels)).toEqual([]);
  expect(changedLabels({ ...before, hops: [{ port: 2 }], name: 'b' }, before, labels)).toEqual(['Name', 'Hops']);
  expect(changedLabels({ ...before, tls: { server_name: 'x' } }, before, labels)).toEqual(['Server name']);
  expect(changedLabels({ ...before, tls: {} }, before, labels)).toEqual(['TLS']);
});

test('what is empty in the form of a chain is left out, and a description that is emptied is cleared', () => {
  const hop = { ...newHop({ outer: 'tcp', security: 'raw' }), node_id: 'n', listen_port: '443' };
  const sent = { node_id: 'n', listen_addr: '0.0.0.0', listen_port: 443, outer: 'tcp', security: 'raw' };
  expect(bodyOf({ hops: [hop] })).toEqual({ hops: [sent] });
  const whole = { ...hop, server_names: ['a.example'], credential_id: 'c', max_streams: 4, dial_addr: '192.0.2.1' };
  expect(bodyOf({ hops: [whole] }).hops).toEqual([
    { ...sent, server_names: ['a.example'], credential_id: 'c', max_streams: 4, dial_addr: '192.0.2.1' },
  ]);
  expect(bodyOf({ description: '' })).toEqual({ description: null });
  expect(bodyOf({ name: 'front' })).toEqual({ name: 'front' });
  expect(valuesOf(undefined).hops).toHaveLength(1);
});

test('an override that was taken out is named with null', () => {
  const override = (node_id: string, multiplex = true) => ({ node_id, multiplex, multiplex_port: null });
  const [kept, gone, added] = [override('kept'), override('gone'), override('added', false)];
  expect(overrideChanges([kept, gone], [kept, added])).toEqual([kept, added, { node_id: 'gone', multiplex: null }]);
  expect(overrideChanges([], [])).toEqual([]);
});

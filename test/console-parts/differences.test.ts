/** What two versions of a resource, or two snapshots of a node, differ in. */
import { describe, expect, test } from 'vitest';
import { hunksOf, type Snapshot } from '../../console/src/nodes/config-hunks.js';
import { differencesOf } from '../../console/src/shared/ui/differences.js';

describe('differences', () => {
  test('are the fields that differ, by their path in the API', () => {
    const before = { payload: 'tcp', hops: [{ node_id: 'a', listen_port: 1 }], target: { endpoint: 'x:1' } };
    const after = { payload: 'tcp', hops: [{ node_id: 'a', listen_port: 2 }], target: { endpoint: 'x:1' } };
    expect(differencesOf(before, before)).toEqual([]);
    expect(differencesOf(before, after)).toEqual([{ path: 'hops[0].listen_port', before: 1, after: 2 }]);
  });

  test('name each field of what was added or taken out', () => {
    const [one, two] = [{ node_id: 'a' }, { node_id: 'b' }];
    expect(differencesOf({ hops: [one] }, { hops: [one, two] })).toEqual([
      { path: 'hops[1].node_id', before: undefined, after: 'b' },
    ]);
    expect(differencesOf({ hops: [one, two] }, { hops: [one] })).toEqual([
      { path: 'hops[1].node_id', before: 'b', after: undefined },
    ]);
    expect(differencesOf(undefined, { target: { upstream_id: 'u' } })).toEqual([
      { path: 'target.upstream_id', before: undefined, after: 'u' },
    ]);
  });

  test('take a list of words, and a field that changes its kind, as one', () => {
    expect(differencesOf({ names: ['a'] }, { names: ['a', 'b'] })).toEqual([
      { path: 'names', before: ['a'], after: ['a', 'b'] },
    ]);
    expect(differencesOf({ tls: null }, { tls: { server_name: 'x' } })).toEqual([
      { path: 'tls', before: null, after: { server_name: 'x' } },
    ]);
  });
});

describe('hunks of two snapshots', () => {
  const snapshot = (generation: number, ports: readonly number[]): Snapshot =>
    ({ generation, snapshot: { generation, ports } }) as unknown as Snapshot;
  const ports = Array.from({ length: 30 }, (_, index) => index);

  test('there are none where the number of the generation alone differs', () => {
    expect(hunksOf(snapshot(1, ports), snapshot(2, ports))).toEqual([]);
  });

  test('show each change with four lines around it, and say how many lines are left out', () => {
    const changed = ports.map((port) => (port === 20 ? 2_000 : port));
    const [hunk, ...others] = hunksOf(snapshot(1, ports), snapshot(2, changed)) ?? [];
    expect(others).toEqual([]);
    expect(hunk?.lines.map((line) => line.trimEnd().replaceAll(/\s+/g, ' '))).toEqual([
      ...[16, 17, 18, 19].map((port) => ` ${port},`),
      '- 20,',
      '+ 2000,',
      ...[21, 22, 23, 24].map((port) => ` ${port},`),
    ]);
    // The brackets above the ports, and the ports above the first line that is shown.
    expect(hunk?.skipped).toBe(2 + 16);
  });
});

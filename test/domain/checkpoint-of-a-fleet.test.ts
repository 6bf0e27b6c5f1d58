/**
 * A checkpoint of the fleet: everything that events wrote comes back, by example and at random with the rest of the log
 * behind it, and bytes that are none are refused.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { captureFleet, encodeFleet, restoreFleet } from '../../src/domain/fleet/checkpoint.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { emptyChain } from '../../src/domain/log-chain/links.js';
import * as f from '../support/fleet.js';
import { dumpFleet } from '../support/fleet-dump.js';
import { histories } from '../support/fleet-histories.js';
import { logOf, play } from '../support/fleet-play.js';
import * as l3 from '../support/l3-networks.js';

const slicesOf = (fleet: Fleet): readonly Uint8Array[] => [...encodeFleet(captureFleet(fleet))];
const bytesOf = (fleet: Fleet): Buffer => Buffer.concat(slicesOf(fleet));

/** Something in every table, every singleton and every index. */
function fullFleet(): Fleet {
  const { fleet } = f.given(
    ...['b', 'a'].map((name) => f.createNode(name)),
    { type: 'RaiseCompilerVersion', version: 3 },
    f.settings({
      heartbeat_interval_secs: 20,
      nodes: [{ node_id: f.nodeId('a'), multiplex: true, multiplex_port: 99 }],
    }),
    f.createUpstream('up'),
    ...l3.identity(),
    f.createChain('one', [f.hop('a', 80), f.hop('b', 80)], { target: { upstream_id: f.upstreamId('up') } }),
    f.deployChain('one'),
    f.createRoute('r', [f.routeHop('b', 8080)]),
    f.savePolicy('a', 80, ['raw']),
    l3.createNetwork('net', [l3.member('a', '10.0.0.1/24'), l3.member('b', '10.0.0.2/24')], [l3.tunnel('a', 'b')]),
  );
  for (const key of ['z', 'y']) {
    const idempotency = { key_hash: key, body_hash: 'body' };
    const at = Date.UTC(2025, 0, 1);
    expect(f.perform(fleet, f.createNode(`with ${key}`), { idempotency, at }).kind).toBe('written');
  }
  fleet.logChain.set({ mac: 'mac', named: [{ stream: 'svc-accounts', revision: 2, mac: 'other' }] });
  return fleet;
}

/** Hours between commands, so that keys are used again after they have expired. */
const withKeys = (step: number) => ({
  at: Date.UTC(2025, 0, 1) + step * 5_400_000 + (step % 3) * 1_000_000,
  idempotency: step % 3 === 0 ? undefined : { key_hash: `key ${step % 16}`, body_hash: 'body' },
});

describe('a checkpoint', () => {
  it('gives the same fleet again', () => {
    const fleet = fullFleet();
    const copy = restoreFleet(bytesOf(fleet));
    expect(dumpFleet(copy)).toBe(dumpFleet(fleet));
    expect(copy.logChain.value).toEqual({ mac: 'mac', named: [{ stream: 'svc-accounts', revision: 2, mac: 'other' }] });
    expect(copy.idempotency.keys.get('y')).toMatchObject({ body_hash: 'body', resource_id: f.nodeId('with y') });
    expect(copy.generationOf(f.nodeId('a'))).toBe(fleet.generationOf(f.nodeId('a')));
    expect(bytesOf(copy).equals(bytesOf(fleet))).toBe(true);
  });

  it('of a fleet without a command is read as one', () => {
    const bytes = bytesOf(emptyFleet());
    expect(bytes.toString().split('\n')).toHaveLength(2);
    expect(restoreFleet(bytes).logChain.value).toEqual(emptyChain);
    expect(dumpFleet(restoreFleet(bytes))).toBe(dumpFleet(emptyFleet()));
  });

  it('has the rows of each table in the order of their ids', () => {
    const rows = bytesOf(fullFleet())
      .toString()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as [string, string]);
    for (const table of ['node', 'touched', 'key']) {
      const ids = rows.filter(([name]) => name === table).map(([, id]) => id);
      expect(ids.length).toBeGreaterThan(1);
      expect(ids).toEqual([...ids].sort());
    }
  });

  it('gives the fleet of a full replay once the rest of the log is folded, indexes included', () => {
    fc.assert(
      fc.property(histories(80), fc.nat(), (moves, at) => {
        const { fleet, steps } = play(moves, { recording: withKeys });
        const log = logOf(steps);
        const cut = at % (log.length + 1);
        const before = f.foldOf(log.slice(0, cut));
        const bytes = bytesOf(before);
        const restored = restoreFleet(bytes);
        expect(dumpFleet(restored)).toBe(dumpFleet(before));
        expect(bytesOf(restored).equals(bytes)).toBe(true);
        expect(dumpFleet(f.foldOf(log.slice(cut), restored))).toBe(dumpFleet(fleet));
      }),
      { numRuns: 40 },
    );
  });

  it('holds the fleet as captured, although the fold continues while it is encoded', () => {
    const { fleet, when } = f.given(f.createNode('a'), f.createNode('b'));
    const dump = dumpFleet(fleet);
    const slices = encodeFleet(captureFleet(fleet));
    when(f.createNode('c')).thenAccepted();
    expect(dumpFleet(restoreFleet(Buffer.concat([...slices])))).toBe(dump);
  });

  it('may lack the line feed at its end', () => {
    const fleet = fullFleet();
    expect(dumpFleet(restoreFleet(bytesOf(fleet).subarray(0, -1)))).toBe(dumpFleet(fleet));
  });

  it('comes in slices of some hundred rows', () => {
    const { fleet } = f.given(...Array.from({ length: 600 }, (_, index) => f.createNode(`n${index}`)));
    const slices = slicesOf(fleet);
    // The head; then 600 nodes, and when each was touched.
    expect(slices.map((slice) => Buffer.from(slice).toString().split('\n').length - 1)).toEqual([1, 500, 500, 200]);
    expect(dumpFleet(restoreFleet(Buffer.concat(slices)))).toBe(dumpFleet(fleet));
  });

  it.each(['["unknown","id",1]\n', 'not JSON\n'])('with the line %j is refused', (line) => {
    expect(() => restoreFleet(Buffer.concat([bytesOf(fullFleet()), Buffer.from(line)]))).toThrow();
  });
});

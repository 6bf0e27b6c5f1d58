/** The newest snapshot of a node: its stamp is remembered, and it is withheld alone when it cannot be made. */
import { beforeEach, describe, expect, it } from 'vitest';
import { stampOf } from '../../src/delivery/target.js';
import { createNewestSnapshots, type NewestSnapshotsDeps } from '../../src/delivery/newest.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { compilerVersion } from '../../src/kernel/release.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { createDeliveryFixture } from '../support/delivery-fixture.js';

let fleet: Fleet;
let compiled: number;
let logged: object[];

beforeEach(async () => {
  const fixture = await createDeliveryFixture();
  await fixture.log.createNode('n1');
  fleet = fixture.log.fleet;
  await fixture.close();
  fleet.singletons.service.set(compilerVersion);
  [compiled, logged] = [0, []];
});

const create = (deps: Partial<NewestSnapshotsDeps> = {}) =>
  createNewestSnapshots({
    fleet: () => fleet,
    openSecret: () => {
      throw new Error('no secret is expected');
    },
    logger: { ...silentLogger, error: (fields) => void logged.push(fields) },
    compile: (...args) => {
      compiled += 1;
      return compileNode(...args);
    },
    ...deps,
  });

describe('the newest snapshot', () => {
  it('has the stamp of its bytes, which is remembered', async () => {
    const newest = create();
    const stamp = newest.stamp('n1');
    const made = newest.get('n1');
    if (made.kind !== 'made' || stamp.kind !== 'made') throw new Error('withheld');
    expect(made.stamp).toEqual(stampOf(made.value));
    expect(stamp).toEqual({ kind: 'made', stamp: made.stamp, value: undefined });
    expect(newest.get('n1')).toEqual(made);
    expect(newest.stamp('n1')).toEqual(stamp);
    expect(compiled).toBe(3);
    newest.forget('n1');
    expect(newest.stamp('n1')).toEqual(stamp);
    expect(compiled).toBe(4);
  });

  it('is made again for a newer generation', async () => {
    const newest = create();
    const before = newest.get('n1');
    fleet.touched.set('n1', 5);
    fleet.revision.set(6);
    const after = newest.get('n1');
    if (before.kind !== 'made' || after.kind !== 'made') throw new Error('withheld');
    expect([after.stamp.generation > before.stamp.generation, compiled]).toEqual([true, 2]);
  });

  it('of an unknown node is none', async () => {
    const newest = create();
    expect([newest.get('x'), newest.stamp('x'), compiled]).toEqual([
      { kind: 'unknown_node' },
      { kind: 'unknown_node' },
      0,
    ]);
  });

  it('that cannot be compiled is withheld, which is told once for each generation', async () => {
    const newest = create({
      compile: () => {
        throw new Error('a bug');
      },
    });
    const generation = fleet.generationOf('n1');
    for (let round = 0; round < 3; round += 1) expect(newest.get('n1')).toEqual({ kind: 'withheld' });
    expect(newest.stamp('n1')).toEqual({ kind: 'withheld' });
    expect(logged).toEqual([{ node_id: 'n1', generation, error: 'Error: a bug' }]);
    fleet.touched.set('n1', 8);
    newest.get('n1');
    expect(logged).toHaveLength(2);
  });

  it('is unavailable, not withheld, while the data keys are out of reach', async () => {
    const newest = create({
      compile: () => {
        throw new ServiceError('unavailable', 'away');
      },
    });
    expect(() => newest.get('n1')).toThrow('away');
    expect(() => newest.stamp('n1')).toThrow('away');
    const other = create({
      compile: () => {
        throw new ServiceError('internal', 'odd');
      },
    });
    expect([other.get('n1'), logged.length]).toEqual([{ kind: 'withheld' }, 1]);
  });

  it.each([compilerVersion - 1, compilerVersion + 1])(
    'is not made, nor its stamp given, while the log is at compiler version %i',
    async (version) => {
      const newest = create();
      newest.get('n1');
      fleet.singletons.service.set(version);
      expect(() => newest.get('n1')).toThrow(expect.objectContaining({ code: 'unavailable' }));
      expect(() => newest.stamp('n1')).toThrow(expect.objectContaining({ code: 'unavailable' }));
    },
  );
});

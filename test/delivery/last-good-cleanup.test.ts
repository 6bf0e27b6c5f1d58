/** Last-good snapshots of deleted nodes are removed one after the other, and only when the fold is up to date. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLastGoodCleanup } from '../../src/delivery/last-good.js';
import type { LastGoodCleanup, LastGoodCleanupDeps } from '../../src/delivery/last-good.js';
import { eventually } from '../support/eventually.js';

let removed: string[];
let errors: string[];
let cleanup: LastGoodCleanup;

const create = (deps: Partial<LastGoodCleanupDeps> = {}): LastGoodCleanup => {
  cleanup = createLastGoodCleanup({
    mayRemove: () => true,
    isDeleted: () => true,
    remove: async (nodeId) => void removed.push(nodeId),
    onError: (nodeId) => errors.push(nodeId),
    ...deps,
  });
  return cleanup;
};
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

beforeEach(() => {
  [removed, errors] = [[], []];
});
afterEach(() => cleanup.close());

describe('the cleanup of last-good snapshots', () => {
  it('waits until removing is allowed, then removes each once', async () => {
    let allowed = false;
    create({ mayRemove: () => allowed });
    cleanup.add('n1');
    cleanup.add('n2');
    cleanup.add('n1');
    await turns();
    expect(removed).toEqual([]);
    allowed = true;
    cleanup.wake();
    await turns();
    cleanup.wake();
    await turns();
    expect(removed).toEqual(['n1', 'n2']);
  });

  it('stops in the middle when removing is no longer allowed, and continues there', async () => {
    let allowed = true;
    create({
      mayRemove: () => allowed,
      remove: async (nodeId) => {
        removed.push(nodeId);
        allowed = removed.length !== 1;
      },
    });
    cleanup.add('n1');
    cleanup.add('n2');
    await turns();
    expect(removed).toEqual(['n1']);
    allowed = true;
    cleanup.wake();
    await turns();
    expect(removed).toEqual(['n1', 'n2']);
  });

  it('leaves a node that was restored, for good', async () => {
    let deleted = false;
    create({ isDeleted: () => deleted });
    cleanup.add('n1');
    await turns();
    deleted = true;
    cleanup.wake();
    await turns();
    expect(removed).toEqual([]);
  });

  it('removes a node that is added while the last one is being removed', async () => {
    create({
      remove: async (nodeId) => {
        await Promise.resolve();
        removed.push(nodeId);
        if (nodeId === 'n1') cleanup.add('n2');
      },
    });
    cleanup.add('n1');
    await turns();
    expect(removed).toEqual(['n1', 'n2']);
  });

  it('removes one at a time', async () => {
    let release: (() => void) | undefined;
    create({
      remove: async (nodeId) => {
        removed.push(nodeId);
        await new Promise<void>((resolve) => (release = resolve));
      },
    });
    cleanup.add('n1');
    cleanup.add('n2');
    cleanup.wake();
    await turns();
    expect(removed).toEqual(['n1']);
    release?.();
    await turns();
    expect(removed).toEqual(['n1', 'n2']);
    release?.();
  });

  it('tries one again that could not be removed, after a pause', async () => {
    let away = true;
    create({
      remove: async (nodeId) => {
        if (away) throw new Error('away');
        removed.push(nodeId);
      },
    });
    cleanup.add('n1');
    await turns();
    expect(errors).toEqual(['n1']);
    away = false;
    await eventually(() => removed).toEqual(['n1']);
    expect(errors).toEqual(['n1']);
  });

  it('ends at once when it is closed during the pause, and removes nothing afterwards', async () => {
    create({ remove: () => Promise.reject(new Error('away')) });
    cleanup.add('n1');
    cleanup.add('n2');
    await turns();
    const started = performance.now();
    await cleanup.close();
    expect(performance.now() - started).toBeLessThan(1_500);
    cleanup.add('n3');
    cleanup.wake();
    await turns();
    expect(errors).toEqual(['n1']);
  });
});

/** Last-good snapshots of deleted nodes are removed one after the other, and only when the fold is up to date. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startNodeCleanup, type NodeCleanup, type NodeCleanupDeps } from '../../src/delivery/last-good.js';
import { eventually } from '../support/eventually.js';

let removed: string[];
let errors: string[];
let cleanup: NodeCleanup;

const start = (deps: Partial<NodeCleanupDeps> = {}): NodeCleanup => {
  cleanup = startNodeCleanup(
    {
      mayRemove: () => true,
      isDeleted: () => true,
      remove: async (nodeId) => void removed.push(nodeId),
      onError: (nodeId) => errors.push(nodeId),
      ...deps,
    },
    1,
  );
  return cleanup;
};
const someTurns = (): Promise<void> => delay(30);

beforeEach(() => {
  [removed, errors] = [[], []];
});
afterEach(() => cleanup.close());

describe('the cleanup of last-good snapshots', () => {
  it('waits until removing is allowed, then removes each once', async () => {
    let allowed = false;
    start({ mayRemove: () => allowed });
    for (const nodeId of ['n1', 'n2', 'n1']) cleanup.add(nodeId);
    await someTurns();
    expect(removed).toEqual([]);
    allowed = true;
    await eventually(() => removed).toEqual(['n1', 'n2']);
    await someTurns();
    expect(removed).toEqual(['n1', 'n2']);
  });

  it('stops in the middle when removing is no longer allowed, and continues there', async () => {
    let allowed = true;
    start({
      mayRemove: () => allowed,
      remove: async (nodeId) => {
        removed.push(nodeId);
        allowed = removed.length !== 1;
      },
    });
    cleanup.add('n1');
    cleanup.add('n2');
    await someTurns();
    expect(removed).toEqual(['n1']);
    allowed = true;
    await eventually(() => removed).toEqual(['n1', 'n2']);
  });

  it('leaves a node that was restored, for good', async () => {
    let deleted = false;
    start({ isDeleted: () => deleted });
    cleanup.add('n1');
    await someTurns();
    deleted = true;
    await someTurns();
    expect(removed).toEqual([]);
  });

  it('removes one at a time, and a node that is added meanwhile', async () => {
    let release: (() => void) | undefined;
    start({
      remove: async (nodeId) => {
        removed.push(nodeId);
        await new Promise<void>((resolve) => (release = resolve));
      },
    });
    cleanup.add('n1');
    await eventually(() => removed).toEqual(['n1']);
    cleanup.add('n2');
    await someTurns();
    expect(removed).toEqual(['n1']);
    release?.();
    await eventually(() => removed).toEqual(['n1', 'n2']);
    release?.();
  });

  it('tries one again that could not be removed, and tells only the first of several failures', async () => {
    let away = true;
    start({
      remove: async (nodeId) => {
        if (away) throw new Error('away');
        removed.push(nodeId);
      },
    });
    cleanup.add('n1');
    await someTurns();
    expect(errors).toEqual(['n1']);
    away = false;
    await eventually(() => removed).toEqual(['n1']);
  });

  it('removes nothing after it was closed', async () => {
    start();
    await cleanup.close();
    cleanup.add('n3');
    await someTurns();
    expect(removed).toEqual([]);
  });
});

/**
 * Failure drill of `docs/how-to/restore.md#agents-that-are-ahead`: agents apply what the restored log says, no agent
 * gets a generation twice or a lower one, and no node is raised twice. A restore on embedded stores is that of
 * `restore-equal-number.test.ts`.
 */
import { describe, expect, test } from 'vitest';
import { refreshes, restoreDrill, rises, someHeartbeats } from '../support/restore-drill.js';
import { externalStores, externalStoresBuilt } from '../support/store-pairs.js';

describe.skipIf(!externalStoresBuilt())('a restore under agents that are ahead', () => {
  test(
    'raises each node once above its agent, and sends what the restored log says',
    () =>
      restoreDrill(externalStores, async (site, backup, restore) => {
        await backup();
        await site.converged();
        for (const name of ['second', 'third']) await site.pointAt(name);
        const b = await site.node('b');
        await site.admin().call('POST', `/api/nodes/${b.id}/config`);
        const ahead = await site.converged();

        await site.service.kill();
        await restore();
        await site.throughBecomes('first');
        const after = await site.converged();
        for (const index of [0, 1] as const) expect(after[index].generation).toBeGreaterThan(ahead[index].generation);
        const seen = [site.applied('a'), site.applied('b')];
        for (const generations of seen) expect(rises(generations), String(generations)).toBe(true);

        await someHeartbeats(site);
        expect([site.applied('a'), site.applied('b')]).toEqual(seen);
        const still = await site.converged();
        expect(still.map(({ generation }) => generation)).toEqual(after.map(({ generation }) => generation));
        expect(await site.through()).toBe('first');
        const raised = (await refreshes(site)).filter(({ actor }) => actor.type === 'agent');
        expect(raised.map(({ resource }) => resource.id).sort()).toEqual([after[0].id, after[1].id].sort());
        for (const { changes } of raised) {
          expect(changes).toEqual([{ path: 'generation_offset', before: 0, after: expect.any(Number) }]);
        }

        // The raise is in the log: another start raises nothing, and the next edit gets a higher generation.
        await site.service.kill();
        await site.start();
        expect((await site.converged()).map(({ generation }) => generation)).toEqual(
          after.map(({ generation }) => generation),
        );
        expect(site.applied('a')).toEqual(seen[0]);
        await site.pointAt('fourth');
        await site.converged();
        expect(site.applied('a').at(-1)).toBeGreaterThan(after[0].generation);
        expect(await refreshes(site)).toHaveLength(raised.length);
      }),
    120_000,
  );
});

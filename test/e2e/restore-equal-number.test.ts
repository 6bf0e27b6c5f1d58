/**
 * Failure drill of `docs/operations.md`: after a restore another edit gives the node the number that its agent already
 * runs, with other contents. Only the checksum tells them apart.
 */
import { expect, test } from 'vitest';
import { refreshes, restoreDrill, rises, someHeartbeats } from '../support/restore-drill.js';
import { onStorePairs } from '../support/store-pairs.js';

onStorePairs('a restore under an agent of an equal number', (stores) => {
  test(
    'a restore and another edit of the same number are noticed by the checksum',
    () =>
      restoreDrill(stores, async (site, backup, restore) => {
        await backup();
        await site.converged();
        await site.pointAt('second');
        const [before] = await site.converged();

        // The agent must not come back before the edit, or it would be a restore with an agent ahead.
        site.agent('a').child.kill('SIGSTOP');
        await site.service.kill();
        await restore();
        await site.edit('third');
        expect((await site.node('a')).generation).toBe(before.generation);
        site.agent('a').child.kill('SIGCONT');
        await site.throughBecomes('third');
        const [after] = await site.converged();
        expect(after.generation).toBeGreaterThan(before.generation);
        const seen = site.applied('a');
        expect(rises(seen), String(seen)).toBe(true);
        await someHeartbeats();
        expect(site.applied('a')).toEqual(seen);
        const raised = await refreshes(site);
        expect(raised.map(({ actor, resource }) => [actor.type, resource.id])).toEqual([['agent', after.id]]);
      }),
    120_000,
  );
});

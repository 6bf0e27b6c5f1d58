/**
 * Failure drill of `docs/how-to/restore.md#agents-at-an-equal-number-with-other-content`: after a restore,
 * another edit gives the node the generation that its agent already runs. Only the checksum differs. A restore on external
 * stores is that of `restore-drills.test.ts`.
 */
import { expect, test } from 'vitest';
import { refreshes, restoreDrill, rises, someHeartbeats } from '../support/restore-drill.js';
import { embeddedStores } from '../support/store-pairs.js';

test('a restore under an agent at an equal generation is noticed by the checksum and raises the generation', () =>
  restoreDrill(embeddedStores, async (site, backup, restore) => {
    await backup();
    await site.converged();
    // Two edits: the start after the restore writes an event of its own, and the edit behind it is the second.
    await site.edit('one more');
    await site.pointAt('second');
    const [before] = await site.converged();

    // Hold the agent until the edit, or its generation would be ahead rather than equal.
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
    await someHeartbeats(site);
    expect(site.applied('a')).toEqual(seen);
    const raised = await refreshes(site);
    expect(raised.map(({ actor, resource }) => [actor.type, resource.id])).toEqual([['agent', after.id]]);
  }));

/**
 * The failure drills of `docs/operations.md` that take the log back or move it: backups are restored under agents that
 * run newer configurations than the restored log knows, or others of the same number. What the restored log says is
 * applied, no agent sees a generation twice with different contents or a lower one, and nothing goes back and forth.
 */
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { runScript } from '../support/programs.js';
import { startSmallSite } from '../support/small-site.js';
import type { SmallSite } from '../support/small-site.js';
import { onStorePairs } from '../support/store-pairs.js';
import type { StorePair } from '../support/store-pairs.js';

interface AuditEntry {
  readonly action: string;
  readonly actor: { readonly type: string; readonly id: string };
  readonly resource: { readonly id: string };
  readonly changes: readonly { readonly path: string; readonly before: unknown; readonly after: unknown }[];
}

const refreshes = async (site: SmallSite): Promise<readonly AuditEntry[]> =>
  (await site.admin().call<{ items: readonly AuditEntry[] }>('GET', '/api/audit?action=node.refresh')).items;

/** Some heartbeats, after which nothing that was going to happen by itself is left to happen. */
const someHeartbeats = (): Promise<void> => delay(3_500);

const rises = (generations: readonly number[]): boolean =>
  generations.every((generation, index) => index === 0 || generation > generations[index - 1]!);

onStorePairs('restore drills', (stores) => {
  /** Runs a drill on a small site; `backup` and `restore` are those of an operator. */
  async function drill(
    play: (site: SmallSite, backup: () => Promise<void>, restore: () => Promise<void>) => Promise<void>,
  ): Promise<void> {
    const pairs: StorePair[] = [await stores.open()];
    let site: SmallSite | undefined;
    try {
      const { env } = pairs[0]!;
      site = await startSmallSite(env);
      const { folder, service } = site;
      const [data, copy, archive] = [join(folder, 'data'), join(folder, 'backup'), join(folder, 'backup.jsonl')];
      const script = async (name: string, at: Readonly<Record<string, string>>): Promise<void> => {
        expect(await runScript(name, [archive], { ...at, SVC_DATA_DIR: data })).toMatchObject({ code: 0 });
      };
      const embedded = {
        async backup(this: void) {
          await service.stop();
          await cp(data, copy, { recursive: true });
          await site?.start();
        },
        async restore(this: void) {
          await rm(data, { recursive: true });
          await cp(copy, data, { recursive: true });
          await site?.start();
        },
      };
      const external = {
        // The service runs meanwhile.
        backup: () => script('log-export', env),
        async restore(this: void) {
          const pair = await stores.open();
          pairs.push(pair);
          await script('log-import', pair.env);
          await site?.start({ dataDir: data, env: pair.env });
        },
      };
      const { backup, restore } = stores.external ? external : embedded;
      await play(site, backup, restore);
    } finally {
      await site?.close();
      for (const pair of pairs) await pair.close();
    }
  }

  test(
    'a restore under agents that are ahead raises their nodes above them, once, and gives them what the log says',
    () =>
      drill(async (site, backup, restore) => {
        await backup();
        const [atBackup] = await site.converged();
        for (const name of ['second', 'third']) await site.pointAt(name);
        const b = await site.node('b');
        await site.admin().call('POST', `/api/nodes/${b.id}/config`);
        const ahead = await site.converged();
        expect(ahead[0].generation).toBeGreaterThan(atBackup.generation);

        await site.service.kill();
        await restore();
        expect((await site.node('a')).generation).toBe(atBackup.generation);
        await site.throughBecomes('first');
        const after = await site.converged();
        for (const index of [0, 1] as const) expect(after[index].generation).toBeGreaterThan(ahead[index].generation);
        const seen = [site.applied('a'), site.applied('b')];
        for (const generations of seen) expect(rises(generations), String(generations)).toBe(true);

        await someHeartbeats();
        expect([site.applied('a'), site.applied('b')]).toEqual(seen);
        const still = await site.converged();
        expect(still.map(({ generation }) => generation)).toEqual(after.map(({ generation }) => generation));
        expect(await site.through()).toBe('first');
        const raised = (await refreshes(site)).filter(({ actor }) => actor.type === 'agent');
        expect(raised.map(({ resource }) => resource.id).sort()).toEqual([after[0].id, after[1].id].sort());
        for (const { changes } of raised) {
          expect(changes).toEqual([{ path: 'generation_offset', before: 0, after: expect.any(Number) }]);
        }

        // What was raised is in the log: another start raises nothing, and the next edit is above it.
        await site.service.kill();
        await site.start();
        expect((await site.converged()).map(({ generation }) => generation)).toEqual(
          after.map(({ generation }) => generation),
        );
        expect(site.applied('a')).toEqual(seen[0]);
        await site.pointAt('fourth');
        expect(site.applied('a').at(-1)).toBeGreaterThan(after[0].generation);
        expect(await refreshes(site)).toHaveLength(raised.length);
      }),
    120_000,
  );

  test(
    'a restore and another edit of the same number are noticed by the checksum',
    () =>
      drill(async (site, backup, restore) => {
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

/**
 * A backup and restore as an operator does them, on either pair of stores, and what a drill checks afterwards: `log:export`
 * while the service runs, `log:import` into new stores.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { eventually } from '../../scripts/stack/process.js';
import { runMaintenance } from './programs.js';
import { startSmallSite, type SmallSite } from './small-site.js';
import type { StoreKind, StorePair } from './store-pairs.js';

interface AuditEntry {
  readonly action: string;
  readonly actor: { readonly type: string; readonly id: string };
  readonly resource: { readonly id: string };
  readonly changes: readonly { readonly path: string; readonly before: unknown; readonly after: unknown }[];
}

export const refreshes = async (site: SmallSite): Promise<readonly AuditEntry[]> =>
  (await site.admin().call<{ items: readonly AuditEntry[] }>('GET', '/api/audit?action=node.refresh')).items;

/** Waits until two more heartbeats of each node are shown, after which nothing more happens by itself. */
export async function someHeartbeats(site: SmallSite): Promise<void> {
  for (const name of ['a', 'b'] as const) {
    const shown = new Set([(await site.node(name)).last_seen_at]);
    await eventually(`two heartbeats of ${name} are shown`, async () => {
      shown.add((await site.node(name)).last_seen_at);
      return shown.size > 2 ? true : undefined;
    });
  }
}

export const rises = (generations: readonly number[]): boolean =>
  generations.every((generation, index) => index === 0 || generation > generations[index - 1]!);

/** Runs a drill on a small site without a backup yet; closes everything afterwards. */
export async function restoreDrill(
  stores: StoreKind,
  play: (site: SmallSite, backup: () => Promise<void>, restore: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const pairs: StorePair[] = [await stores.open()];
  let site: SmallSite | undefined;
  try {
    const { env } = pairs[0]!;
    site = await startSmallSite(env);
    const { folder } = site;
    const [data, archive] = [join(folder, 'data'), join(folder, 'backup.jsonl')];
    const script = async (name: string, at: Readonly<Record<string, string>>): Promise<void> => {
      expect(await runMaintenance(name, [archive], { ...at, SVC_DATA_DIR: data })).toMatchObject({ code: 0 });
    };
    const backup = (): Promise<void> => script('log:export', env);
    const restore = async (): Promise<void> => {
      const key = stores.external ? undefined : await readFile(join(data, 'master.key'));
      await rm(data, { recursive: true, force: true });
      if (key !== undefined) {
        await mkdir(data);
        await writeFile(join(data, 'master.key'), key, { mode: 0o600 });
      }
      const pair = await stores.open();
      pairs.push(pair);
      await script('log:import', pair.env);
      await site?.start({ dataDir: data, env: pair.env });
    };
    await play(site, backup, restore);
  } finally {
    await site?.close();
    for (const pair of pairs) await pair.close();
  }
}

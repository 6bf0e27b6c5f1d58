/**
 * The configuration that an agent goes back to, kept on disk while another waits for its confirmation, so that a
 * restart loses neither it nor the time that has passed. At all other times there is no such file: the agent keeps no
 * configuration on disk. Implements `docs/contract/rollouts.md#confirmed-changes`.
 */
import { z } from 'zod';
import { RuntimeConfigSnapshot } from '../gen/svc/control/v1/config.js';
import type { Clock } from '../kernel/clock.js';
import type { Confirming, Waiting } from './control/confirming.js';
import { readJson, removeFile, writeFile } from './state-directory.js';

const schema = z.object({
  generation: z.string().regex(/^\d{1,20}$/),
  checksum: z.base64(),
  secs: z.int().min(1),
  /** Wall-clock milliseconds, because time passes while no process runs. */
  until: z.number(),
  /** An encoded `RuntimeConfigSnapshot`. */
  last: z.base64(),
});

export interface UnconfirmedFile {
  /** @param now monotonic milliseconds @returns undefined when nothing waits @throws StateError */
  read(now: number): Promise<Confirming | undefined>;
  /** @throws StateError */
  write(last: RuntimeConfigSnapshot, waiting: Waiting): Promise<void>;
  /** @throws StateError */
  remove(): Promise<void>;
}

/** The file of one node, because several agents on a machine may share a directory. */
export function unconfirmedFile(folder: string, nodeId: string, clock: Clock): UnconfirmedFile {
  const name = `unconfirmed-${encodeURIComponent(nodeId)}.json`;
  return {
    async read(now) {
      const parsed = schema.safeParse(await readJson(folder, name));
      if (!parsed.success) return undefined;
      const { generation, checksum, secs, until, last } = parsed.data;
      // A clock that was set meanwhile does not lengthen the wait.
      const left = Math.min(secs * 1_000, Math.max(0, until - clock.now()));
      return {
        last: RuntimeConfigSnapshot.decode(Buffer.from(last, 'base64')),
        waiting: {
          generation: BigInt(generation),
          checksum: Buffer.from(checksum, 'base64'),
          secs,
          due: now + left,
          snapshot: undefined,
        },
      };
    },
    async write(last, { generation, checksum, secs, due }) {
      const text = JSON.stringify({
        generation: String(generation),
        checksum: checksum.toString('base64'),
        secs,
        until: clock.now() + due - clock.monotonic(),
        last: Buffer.from(RuntimeConfigSnapshot.encode(last).finish()).toString('base64'),
      });
      await writeFile(folder, name, text);
    },
    remove: () => removeFile(folder, name),
  };
}

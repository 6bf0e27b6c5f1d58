/**
 * The configuration that an agent goes back to, kept on disk while another waits for its confirmation, so that a
 * restart loses neither it nor the time that has passed. At all other times there is no such file: the agent keeps no
 * configuration on disk. Implements `docs/contract/rollouts.md#confirmed-changes`.
 */
import { z } from 'zod';
import { RuntimeConfigSnapshot } from '../gen/svc/control/v1/config.js';
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import { nothingKept, type Confirming, type Waiting } from './control/confirming.js';
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
  /** What an earlier process has left there. Never rejects. */
  read(): Promise<Confirming>;
  /** Brings the file in line with the state. Never rejects. */
  save(state: Confirming): Promise<void>;
}

/** The file of one node, because several agents on a machine may share a directory. */
export function unconfirmedFile(folder: string, nodeId: string, clock: Clock, logger: Logger): UnconfirmedFile {
  const name = `unconfirmed-${encodeURIComponent(nodeId)}.json`;
  /** What the file says; nothing for no file. */
  let saved = nothingKept;
  return {
    async read() {
      try {
        const parsed = schema.safeParse(await readJson(folder, name));
        if (parsed.success) saved = decode(parsed.data, clock);
      } catch (error) {
        logger.warn({ error: errorText(error) }, 'what waited for a confirmation cannot be read');
      }
      return saved;
    },
    async save({ last, waiting }) {
      const isNeeded = last !== undefined && waiting !== undefined;
      const next = isNeeded ? { last, waiting } : nothingKept;
      if (next.last === saved.last && next.waiting?.generation === saved.waiting?.generation) return;
      try {
        await (isNeeded ? writeFile(folder, name, encode(last, waiting, clock)) : removeFile(folder, name));
        saved = next;
      } catch (error) {
        logger.warn({ error: errorText(error) }, 'what waits for a confirmation would not survive a restart');
      }
    },
  };
}

function encode(last: RuntimeConfigSnapshot, waiting: Waiting, clock: Clock): string {
  return JSON.stringify({
    generation: String(waiting.generation),
    checksum: waiting.checksum.toString('base64'),
    secs: waiting.secs,
    until: clock.now() + waiting.due - clock.monotonic(),
    last: Buffer.from(RuntimeConfigSnapshot.encode(last).finish()).toString('base64'),
  } satisfies z.output<typeof schema>);
}

function decode({ generation, checksum, secs, until, last }: z.output<typeof schema>, clock: Clock): Confirming {
  // A clock that was set meanwhile does not lengthen the wait.
  const left = Math.min(secs * 1_000, Math.max(0, until - clock.now()));
  return {
    last: RuntimeConfigSnapshot.decode(Buffer.from(last, 'base64')),
    waiting: {
      generation: BigInt(generation),
      checksum: Buffer.from(checksum, 'base64'),
      secs,
      due: clock.monotonic() + left,
      snapshot: undefined,
    },
  };
}

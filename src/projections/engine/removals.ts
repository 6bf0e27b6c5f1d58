/**
 * The loop around whatever the read side removes by and by: a turn now and then, and what it removed in the log. Not what
 * may be removed (`tombstones.ts`, `expired.ts`). Part of `docs/architecture.md#read-models`.
 */
import { startLoop } from '../../kernel/background.js';
import type { Loop } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';

/**
 * @param everyMs the time between two turns
 * @param what names the documents in the log
 * @param remove makes one turn and resolves to how many it removed; after a failure, the next turn tries again
 */
export function startRemovals(everyMs: number, what: string, remove: () => Promise<number>, logger: Logger): Loop {
  return startLoop(
    everyMs,
    async () => {
      const removed = await remove();
      if (removed > 0) logger.debug({ removed }, `${what} removed`);
    },
    (error) => logger.warn({ error: errorText(error) }, `${what} could not be removed`),
  );
}

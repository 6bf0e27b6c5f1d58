/** Runs what a start writes: at once, or as soon as the instance may write, if its clock is wrong meanwhile. */
import { startLoop } from '../kernel/background.js';
import { errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';

const lookEveryMs = 1_000;

/**
 * Resolves when it has run, or when it waits.
 * @param reason why nothing may be written now, or undefined
 * @throws what `run` throws, when it runs at once; later it is logged and tried again
 */
export async function whenWritable(
  reason: () => string | undefined,
  run: () => Promise<void>,
  logger: Logger,
): Promise<{ close(): Promise<void> }> {
  const waitsFor = reason();
  if (waitsFor === undefined) {
    await run();
    return { close: async () => undefined };
  }
  logger.warn({ reason: waitsFor }, 'what this start would write waits until it may be written');
  const loop = startLoop(
    lookEveryMs,
    async () => {
      if (reason() !== undefined) return;
      await run();
      // Not awaited: it waits for this turn.
      void loop.close();
    },
    (error) => logger.error({ error: errorText(error) }, 'what this start would write could not be written yet'),
  );
  return loop;
}

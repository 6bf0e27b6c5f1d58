/**
 * The commands of a start, written at once or as soon as the instance may write: the compiler version of this release.
 * `first-admin.ts` creates the first admin, `log-heads.ts` records the heads of the log chains. Implements
 * `docs/contract/domain.md#generation`.
 */
import { startLoop } from '../kernel/background.js';
import type { Ids } from '../kernel/ids.js';
import { logsError, type Logger } from '../kernel/logger.js';
import type { Gateway } from '../commands/port.js';
import { systemContext } from '../commands/system.js';
import { compilerVersion } from '../kernel/release.js';
import type { DecidedOnFleet } from '../commands/aggregate.js';
import type { Fleet } from '../domain/fleet/fleet.js';

const lookEveryMs = 1_000;

/**
 * Resolves once `run` has run, or has to wait.
 * @param reason why nothing may be written now, or undefined
 * @throws what `run` throws if it runs at once; later failures are logged and retried
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
  logger.warn({ reason: waitsFor }, 'the writes of this start wait until writing is allowed');
  const loop = startLoop(
    lookEveryMs,
    async () => {
      if (reason() !== undefined) return;
      await run();
      // Not awaited: it waits for this turn.
      void loop.close();
    },
    logsError(logger, 'the writes of this start failed and will be retried'),
  );
  return loop;
}

/**
 * Raises the compiler number in the log to this release's. Only at a start: a running instance must not undo an
 * operator's lowering of the number.
 * @throws ServiceError `unavailable`
 */
export async function raiseCompilerVersion(
  gateway: Gateway<Fleet, DecidedOnFleet>,
  ids: Ids,
  logger: Logger,
): Promise<void> {
  const command: DecidedOnFleet = {
    type: 'WithRollout',
    command: { type: 'RaiseCompilerVersion', version: compilerVersion },
    policy: undefined,
    rolloutId: ids.next(),
    // No agent is connected yet.
    observe: { isOnline: () => false, failing: () => [] },
    planned: () => undefined,
  };
  const outcome = await gateway.execute(command, systemContext('start'), () => undefined);
  if (outcome.kind === 'done' && outcome.events.length > 0) {
    logger.info({ compiler_version: compilerVersion }, 'the compiler version is raised: every node is touched');
  }
}

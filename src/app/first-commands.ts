/**
 * The commands of a start, written at once, or as soon as the instance may write: the compiler version of this release.
 * The first admin is in `first-admin.ts`, the heads of the log chains are in `log-heads.ts`. Implements
 * `docs/contract/domain.md#generation`.
 */
import { startLoop } from '../kernel/background.js';
import { errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import type { Gateway } from '../commands/port.js';
import { systemContext } from '../commands/system.js';
import { compilerVersion } from '../domain/compile/version.js';
import type { FleetCommand } from '../domain/fleet/resources.js';
import type { Fleet } from '../domain/fleet/fleet.js';

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

/**
 * Raises the compiler number in the log to this release's. Never later: a running instance must not raise a number again that
 * an operator has lowered.
 * @throws ServiceError `unavailable`
 */
export async function raiseCompilerVersion(gateway: Gateway<Fleet, FleetCommand>, logger: Logger): Promise<void> {
  const command: FleetCommand = { type: 'RaiseCompilerVersion', version: compilerVersion };
  const outcome = await gateway.execute(command, systemContext('start'), () => undefined);
  if (outcome.kind === 'done' && outcome.events.length > 0) {
    logger.info({ compiler_version: compilerVersion }, 'the compiler version is raised: every node is touched');
  }
}

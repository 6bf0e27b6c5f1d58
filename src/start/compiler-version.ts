/**
 * Raises the compiler number in the log to this release's, at the start and never later: a running instance must not
 * raise a number again that an operator has lowered. See `docs/contract/domain.md#generation`.
 */
import type { Gateway } from '../commands/port.js';
import { systemContext } from '../commands/system.js';
import { compilerVersion } from '../domain/compile/version.js';
import type { FleetCommand } from '../domain/fleet/events.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { Logger } from '../kernel/logger.js';

/** @throws ServiceError `unavailable` */
export async function raiseCompilerVersion(gateway: Gateway<Fleet, FleetCommand>, logger: Logger): Promise<void> {
  const command: FleetCommand = { type: 'RaiseCompilerVersion', version: compilerVersion };
  const outcome = await gateway.execute(command, systemContext('start'), () => undefined);
  if (outcome.kind === 'done' && outcome.events.length > 0) {
    logger.info({ compiler_version: compilerVersion }, 'the compiler version is raised: every node is touched');
  }
}

/** The gateway of the fleet for a command that is not an instance: it folds the log once and follows nothing. */
import { fleetAggregate, type DecidedOnFleet } from '../../src/commands/aggregate.js';
import { createGateway } from '../../src/commands/gateway.js';
import type { Gateway } from '../../src/commands/port.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { BrokenChainError } from '../../src/domain/log-chain/links.js';
import { UnknownEventError } from '../../src/domain/log/upcast.js';
import { systemClock } from '../../src/kernel/clock.js';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openCommittedFleet } from '../../src/projections/fleet/committed-fleet.js';
import type { LogChain } from '../../src/security/log-chain/log-chain.js';
import { CommandError, plainLogger } from './command-line.js';
import type { Installation } from './installation.js';

/** @throws CommandError when the log holds an event that this release does not know, or its chain is broken */
export async function fleetGateway(
  { eventStore }: Pick<Installation, 'eventStore'>,
  logChain: LogChain,
): Promise<Gateway<Fleet, DecidedOnFleet>> {
  const committed = await openCommittedFleet({ eventStore, logger: silentLogger, logChain });
  try {
    await committed.catchUp();
    return createGateway(
      fleetAggregate,
      { ...committed, state: committed.fleet },
      {
        eventStore,
        clock: systemClock,
        ids: randomIds,
        logger: plainLogger,
        logChain,
        readOnly: () => undefined,
        sharedTime: systemClock.now,
      },
    );
  } catch (error) {
    if (error instanceof BrokenChainError) throw new CommandError(`Nothing is written: ${error.message}.`);
    if (!(error instanceof UnknownEventError)) throw error;
    throw new CommandError(`This release cannot read the log: ${error.message}.`);
  }
}

/**
 * Waits until every live instance refuses the tokens that a password change has ended: each says in its lease up to which
 * revision of `svc-accounts` it has read. Does not refuse them: `src/accounts` does, which reads the log anyway.
 * Implements `docs/contract/rest.md#authentication-and-roles`.
 */
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import type { LiveInstance } from './instance-lease.js';
import { waitUntil } from './wait-until.js';

export interface EndedTokensDeps {
  /** Undefined for a command that is no instance. */
  readonly instanceId: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  liveInstances(): Promise<readonly LiveInstance[]>;
}

/**
 * True once every other live instance has read a revision of `svc-accounts`, false after `timeoutMs`. An instance of a
 * release that does not state what it has read is not waited for.
 */
export async function tokensEnded(
  { instanceId, clock, logger, liveInstances }: EndedTokensDeps,
  revision: number,
  timeoutMs: number,
): Promise<boolean> {
  return waitUntil(clock, clock.monotonic() + timeoutMs, async () => {
    try {
      const instances = await liveInstances();
      return instances.every(
        ({ instance_id, accounts }) => instance_id === instanceId || accounts === null || accounts >= revision,
      );
    } catch (error) {
      logger.warn({ error: errorText(error) }, 'the leases of the other instances cannot be read');
      return false;
    }
  });
}

/**
 * Ends the overlap of a certificate's previous key when it is due, and counts expiring certificates. Every instance
 * ends overlaps; all but the first find nothing to do. Implements the event `CredentialOverlapEnded` of
 * `docs/contract/domain.md#l4-chain`.
 */
import type { Gateway } from '../commands/port.js';
import { systemContext } from '../commands/system.js';
import { tuning } from '../commands/tuning.js';
import type { CredentialState } from '../domain/credential/credential.js';
import { countCredentials } from '../domain/fleet/counts.js';
import type { FleetCommand } from '../domain/fleet/resources.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { startLoop } from '../kernel/background.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import { gauge, type NumberSource } from '../instance/metrics.js';
import type { FleetQueries } from '../projections/fleet/fleet-queries.js';

interface CredentialWatchOptions {
  readonly fleet: Pick<FleetQueries, 'credentials'>;
  readonly gateway: Pick<Gateway<Fleet, FleetCommand>, 'execute'>;
  readonly logger: Logger;
  /** Now, in milliseconds since the epoch, even if this instance's own clock is ahead. */
  now(): number;
  /** Why this instance may not write now. */
  readOnly(): string | undefined;
  /** Milliseconds between two checks; for tests. */
  readonly everyMs?: number;
}

interface CredentialWatch {
  metrics(): readonly NumberSource[];
  close(): Promise<void>;
}

export function watchCredentials(options: CredentialWatchOptions): CredentialWatch {
  const { fleet, gateway, logger, now, readOnly } = options;
  const loop = startLoop(
    options.everyMs ?? tuning.overlapsEveryMs,
    async (signal) => {
      if (readOnly() !== undefined) return;
      for (const { id, ends_at } of dueOverlaps(fleet.credentials(), now())) {
        if (signal.aborted) return;
        const command = { type: 'EndCredentialOverlap', id, ends_at } as const;
        await gateway.execute(command, systemContext('credential overlap'), () => undefined);
      }
    },
    logsWarning(logger, 'the overlap of a certificate key could not be ended yet'),
  );
  return {
    metrics: () => [
      gauge(
        'svc_credentials',
        'Credentials: all of them, and those whose certificate expires within 30 days or has expired.',
        () => new Map(Object.entries(countCredentials(fleet.credentials(), now()))),
        'which',
      ),
    ],
    close: () => loop.close(),
  };
}

/** The credentials whose overlap is due, with its end, which identifies it to the command. */
function dueOverlaps(
  credentials: Iterable<CredentialState>,
  now: number,
): readonly { readonly id: string; readonly ends_at: string }[] {
  const due: { readonly id: string; readonly ends_at: string }[] = [];
  for (const { id, overlap } of credentials) {
    if (overlap !== null && Date.parse(overlap.ends_at) <= now) due.push({ id, ends_at: overlap.ends_at });
  }
  return due;
}

/**
 * Writes a checkpoint of the committed fleet after a fixed number of fleet events, in the background and one at a time;
 * the first one sooner, so that no start replays what the start before it has replayed. Its format is in
 * `fold-checkpoint.ts`. Implements `docs/contract/domain.md#commands-and-events`.
 */
import { captureFleet } from '../../domain/fleet/checkpoint.js';
import type { Fleet } from '../../domain/fleet/fleet.js';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import type { LogChain } from '../../security/log-chain/log-chain.js';
import type { EventStore } from '../../storage/event-store.js';
import { saveFleet } from './fold-checkpoint.js';

export interface CheckpointWriter {
  /**
   * Captures the fleet and writes it in the background, if enough events have passed since the last checkpoint. The first
   * call is made when a start has caught up with the log.
   */
  writeIfDue(fleet: Fleet): void;
  /** Waits for the write that is running; the signal ends it early. */
  close(): Promise<void>;
}

export interface CheckpointWriterDeps {
  readonly eventStore: Pick<EventStore, 'saveFoldCheckpoint'>;
  readonly logger: Logger;
  readonly logChain: Pick<LogChain, 'seal'>;
  /** Fleet events between two checkpoints. */
  readonly every: number;
  /** Fleet events that are worth a checkpoint when a start has replayed them. */
  readonly everyStart: number;
  /** Revision of the checkpoint that the fold started from; -1 for none. */
  readonly from: number;
  readonly signal: AbortSignal;
}

export function createCheckpointWriter(deps: CheckpointWriterDeps): CheckpointWriter {
  let lastRevision = deps.from;
  let started = false;
  let writing: Promise<void> | undefined;
  return {
    writeIfDue(fleet) {
      const every = started ? deps.every : Math.min(deps.every, deps.everyStart);
      started = true;
      if (writing !== undefined || fleet.revision.value - lastRevision < every) return;
      const capture = captureFleet(fleet);
      lastRevision = capture.revision;
      writing = saveFleet(deps.eventStore, deps.logChain, capture, deps.signal)
        .catch((error: unknown) => deps.logger.warn({ error: errorText(error) }, 'the fold checkpoint was not written'))
        .finally(() => {
          writing = undefined;
        });
    },
    async close() {
      await writing;
    },
  };
}

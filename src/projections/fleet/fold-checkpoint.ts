/**
 * The stored checkpoint of the committed fleet: loads and verifies it, and writes a new one in slices, after a fixed
 * number of fleet events, in the background and one at a time; the first one sooner, so that no start replays what the
 * start before it has replayed. A checkpoint that fails its verification is not used at all. Implements
 * `docs/contract/domain.md#commands-and-events` and `docs/log-chain.md`.
 *
 * A start does not read what the checkpoint holds, so the checkpoint must be as hard to forge as the log: its last line is
 * a seal, and the log must hold the command that it ends with.
 */
import { createHash } from 'node:crypto';
import type { FleetCapture } from '../../domain/fleet/checkpoint.js';
import { encodeFleet, foldVersion, restoreFleet, captureFleet } from '../../domain/fleet/checkpoint.js';
import type { Fleet } from '../../domain/fleet/fleet.js';
import { storedLink } from '../../domain/log-chain/links.js';
import { yieldToEventLoop } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import type { RecordedEvent } from '../../kernel/event.js';
import { isForeign, streams } from '../../kernel/event.js';
import type { Logger } from '../../kernel/logger.js';
import type { Result } from '../../kernel/result.js';
import { err, ok } from '../../kernel/result.js';
import type { LogChain } from '../../security/log-chain/log-chain.js';
import { firstFrom } from '../../storage/event-store.js';
import type { EventStore, FoldCheckpoint } from '../../storage/event-store.js';

const fleetCheckpointName = streams.fleet;

/** @returns the fleet of the stored checkpoint; undefined when none verifies and the log must be replayed */
export async function loadFleet(
  store: EventStore,
  logChain: Pick<LogChain, 'seal'>,
  logger: Logger,
): Promise<Fleet | undefined> {
  const stored = await store.loadFoldCheckpoint(fleetCheckpointName);
  if (stored === undefined) return undefined;
  const refuse = (reason: string): undefined => {
    logger.warn({ revision: stored.revision, reason }, 'the fold checkpoint is not used; the log is replayed instead');
    return undefined;
  };
  const read = readFleet(stored, logChain);
  if (!read.ok) return refuse(read.error);
  const fleet = read.value;
  return isInLog(fleet, await eventAt(store, stored.revision))
    ? fleet
    : refuse('the log does not hold the command that it ends with');
}

/**
 * The stored checkpoint, and the event of the log that it ends with; not verified.
 * @param isWanted whether a checkpoint of this revision is of use
 * @throws ServiceError `unavailable`
 */
export async function loadCheckpoint(
  store: EventStore,
  isWanted: (revision: number) => boolean,
): Promise<StoredFleet | undefined> {
  const stored = await store.loadFoldCheckpoint(fleetCheckpointName);
  if (stored === undefined || !isWanted(stored.revision)) return undefined;
  return { stored, last: await eventAt(store, stored.revision) };
}

export interface StoredFleet {
  readonly stored: FoldCheckpoint;
  /** Undefined when the log ends before it. */
  readonly last: RecordedEvent | undefined;
}

async function eventAt(store: EventStore, revision: number): Promise<RecordedEvent | undefined> {
  const event = await firstFrom(store, streams.fleet, revision);
  return event === undefined || isForeign(event) ? undefined : event;
}

/** Verifies a stored checkpoint, apart from `isInLog`. @returns its fleet, or why it is not used */
export function readFleet(stored: FoldCheckpoint, logChain: Pick<LogChain, 'seal'>): Result<Fleet, string> {
  if (stored.foldVersion !== foldVersion) return err(`it has fold version ${stored.foldVersion}, not ${foldVersion}`);
  if (sha256Of(stored.bytes) !== stored.sha256) return err('its bytes do not match its SHA-256');
  // The seal is the last line.
  const sealAt = stored.bytes.lastIndexOf(lineBreak, -2) + 1;
  const lines = stored.bytes.subarray(0, sealAt);
  if (Buffer.from(stored.bytes.subarray(sealAt)).toString('utf8') !== sealLine(logChain, sha256Of(lines))) {
    return err("it was not sealed under the key of this installation's log chain");
  }
  let fleet: Fleet;
  try {
    fleet = restoreFleet(lines);
  } catch (error) {
    return err(errorText(error));
  }
  const matches = fleet.revision.value === stored.revision && fleet.position.value === stored.position;
  if (!matches) return err('its bytes are of another revision');
  return ok(fleet);
}

/**
 * False when the log ends before the fold or went another way.
 * @param last the event of the log at the fold's revision
 */
export function isInLog(fleet: Fleet, last: RecordedEvent | undefined): boolean {
  const { revision, logChain } = fleet;
  return (
    last?.revision === revision.value && storedLink({ stream: last.stream, events: [last] })?.mac === logChain.value.mac
  );
}

const lineBreak = 0x0a;
const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** @param sha256 of all lines before it */
const sealLine = (logChain: Pick<LogChain, 'seal'>, sha256: string): string =>
  `${JSON.stringify(['seal', logChain.seal(`${fleetCheckpointName} ${foldVersion} ${sha256}`)])}\n`;

/**
 * Stores a capture; the event loop gets a turn after every slice. @throws ServiceError `unavailable`
 * @internal exported for tests
 */
export async function saveFleet(
  store: Pick<EventStore, 'saveFoldCheckpoint'>,
  logChain: Pick<LogChain, 'seal'>,
  capture: FleetCapture,
  signal: AbortSignal,
): Promise<void> {
  const hash = createHash('sha256');
  const slices: Uint8Array[] = [];
  for (const slice of encodeFleet(capture)) {
    hash.update(slice);
    slices.push(slice);
    await yieldToEventLoop();
    if (signal.aborted) return;
  }
  const seal = Buffer.from(sealLine(logChain, hash.copy().digest('hex')));
  hash.update(seal);
  slices.push(seal);
  await store.saveFoldCheckpoint(fleetCheckpointName, {
    foldVersion,
    revision: capture.revision,
    position: capture.position,
    sha256: hash.digest('hex'),
    bytes: Buffer.concat(slices),
  });
}

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

/**
 * Loads, verifies and stores the checkpoint of the committed fleet; one that fails verification is not used. `../checkpoints.ts`
 * decides when one is due, `src/storage/sealed-checkpoint.ts` seals it. Implements
 * `docs/contract/domain.md#commands-and-events` and `docs/log-chain.md`: the log must hold the command that it ends with.
 */
import { captureFleet, encodeFleet, foldVersion, restoreFleet } from '../../domain/fleet/checkpoint.js';
import type { Fleet } from '../../domain/fleet/fleet.js';
import { storedLink } from '../../domain/log-chain/links.js';
import { errorText } from '../../kernel/errors.js';
import { isForeign, streams, type RecordedEvent } from '../../kernel/event.js';
import type { Logger } from '../../kernel/logger.js';
import { err, ok, type Result } from '../../kernel/result.js';
import type { LogChain } from '../../security/log-chain/log-chain.js';
import { firstFrom, type EventStore, type FoldCheckpoint } from '../../storage/event-store.js';
import { openCheckpoint, storeCheckpoint } from '../../storage/sealed-checkpoint.js';

const kind = { name: streams.fleet, foldVersion } as const;

/** @returns the fleet of the stored checkpoint; undefined when none verifies and the log must be replayed */
export async function loadFleet(
  store: EventStore,
  logChain: Pick<LogChain, 'seal'>,
  logger: Logger,
): Promise<Fleet | undefined> {
  const stored = await store.loadFoldCheckpoint(kind.name);
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
 * @param isWanted whether a checkpoint of this revision is useful
 * @throws ServiceError `unavailable`
 */
export async function loadCheckpoint(
  store: EventStore,
  isWanted: (revision: number) => boolean,
): Promise<StoredFleet | undefined> {
  const stored = await store.loadFoldCheckpoint(kind.name);
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
  const lines = openCheckpoint(kind, stored, logChain);
  if (!lines.ok) return lines;
  let fleet: Fleet;
  try {
    fleet = restoreFleet(lines.value);
  } catch (error) {
    return err(errorText(error));
  }
  const matches = fleet.revision.value === stored.revision && fleet.position.value === stored.position;
  if (!matches) return err('its bytes belong to another revision');
  return ok(fleet);
}

/**
 * False when the log ends before the fold or has diverged from it.
 * @param last the event of the log at the fold's revision
 */
export function isInLog(fleet: Fleet, last: RecordedEvent | undefined): boolean {
  const { revision, logChain } = fleet;
  return (
    last?.revision === revision.value && storedLink({ stream: last.stream, events: [last] })?.mac === logChain.value.mac
  );
}

/** Captures the fleet at once, and stores it in slices. @throws ServiceError `unavailable` */
export function saveFleet(
  store: Pick<EventStore, 'saveFoldCheckpoint'>,
  logChain: Pick<LogChain, 'seal'>,
  fleet: Fleet,
  signal: AbortSignal,
): Promise<void> {
  const capture = captureFleet(fleet);
  const { revision, position } = capture.head;
  return storeCheckpoint(store, kind, { revision, position, slices: encodeFleet(capture) }, logChain, signal);
}

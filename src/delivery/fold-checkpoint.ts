/**
 * The stored checkpoint of the committed fold: loads and verifies it, and writes a new one in slices. A checkpoint that
 * fails its verification is not used at all. Not when one is written (`checkpoint-writer.ts`).
 * Implements `docs/contract/domain.md#commands-and-events`.
 */
import { createHash } from 'node:crypto';
import type { FleetCapture } from '../domain/fleet/checkpoint.js';
import { encodeFleet, foldVersion, restoreFleet } from '../domain/fleet/checkpoint.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { yieldToEventLoop } from '../kernel/background.js';
import { errorText } from '../kernel/errors.js';
import { streams } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import type { EventStore } from '../storage/event-store.js';

const fleetCheckpointName = streams.fleet;

/** @returns the fleet of the stored checkpoint, or undefined when there is none that verifies: replay the log */
export async function loadFleet(
  store: Pick<EventStore, 'loadFoldCheckpoint'>,
  logger: Logger,
): Promise<Fleet | undefined> {
  const stored = await store.loadFoldCheckpoint(fleetCheckpointName);
  if (stored === undefined) return undefined;
  const refuse = (reason: string): undefined => {
    logger.warn({ revision: stored.revision, reason }, 'the fold checkpoint is not used; the log is replayed instead');
    return undefined;
  };
  if (stored.foldVersion !== foldVersion)
    return refuse(`it has fold version ${stored.foldVersion}, not ${foldVersion}`);
  const sha256 = createHash('sha256').update(stored.bytes).digest('hex');
  if (sha256 !== stored.sha256) return refuse('its bytes do not match its SHA-256');
  try {
    const fleet = restoreFleet(stored.bytes);
    const matches = fleet.revision.value === stored.revision && fleet.position.value === stored.position;
    return matches ? fleet : refuse('its bytes are of another revision');
  } catch (error) {
    return refuse(errorText(error));
  }
}

/** Stores a capture; the event loop gets a turn after every slice. @throws ServiceError `unavailable` */
export async function saveFleet(
  store: Pick<EventStore, 'saveFoldCheckpoint'>,
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
  await store.saveFoldCheckpoint(fleetCheckpointName, {
    foldVersion,
    revision: capture.revision,
    position: capture.position,
    sha256: hash.digest('hex'),
    bytes: Buffer.concat(slices),
  });
}

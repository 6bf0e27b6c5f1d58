/**
 * Stored checkpoints of folds. A start reads them instead of the log, so they must be as hard to forge as the log. The
 * last line is a seal under the key of the installation's log chain. Each fold defines the lines before it. Implements
 * `docs/contract/domain.md#commands-and-events`, "fold checkpoint", and `docs/log-chain.md`.
 */
import { createHash } from 'node:crypto';
import { yieldToEventLoop } from '../kernel/background.js';
import { err, ok, type Result } from '../kernel/result.js';
import type { EventStore, FoldCheckpoint } from './event-store.js';

/** Computes the seal; `LogChain` of `src/security` implements it. */
export interface Sealing {
  seal(text: string): string;
}

/** The fold that a checkpoint belongs to. */
export interface CheckpointKind {
  readonly name: string;
  /** Raised when the fold's state or meaning changes: older checkpoints are then ignored. */
  readonly foldVersion: number;
}

/** A fold's state as lines of UTF-8, in slices, with its position in the log. */
export interface CapturedFold {
  readonly revision: number;
  readonly position: number;
  readonly slices: Iterable<Uint8Array>;
}

const lineBreak = 0x0a;
const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** @param sha256 of all lines before it */
const sealLine = ({ name, foldVersion }: CheckpointKind, sealing: Sealing, sha256: string): string =>
  `${JSON.stringify(['seal', sealing.seal(`${name} ${foldVersion} ${sha256}`)])}\n`;

/** @returns the lines before the seal, or why the checkpoint is not used */
export function openCheckpoint(
  kind: CheckpointKind,
  stored: FoldCheckpoint,
  sealing: Sealing,
): Result<Uint8Array, string> {
  const { foldVersion } = kind;
  if (stored.foldVersion !== foldVersion) return err(`it has fold version ${stored.foldVersion}, not ${foldVersion}`);
  if (sha256Of(stored.bytes) !== stored.sha256) return err('its bytes do not match its SHA-256');
  const sealAt = stored.bytes.lastIndexOf(lineBreak, -2) + 1;
  const lines = stored.bytes.subarray(0, sealAt);
  const seal = Buffer.from(stored.bytes.subarray(sealAt)).toString('utf8');
  return seal === sealLine(kind, sealing, sha256Of(lines))
    ? ok(lines)
    : err("it was not sealed under the key of this installation's log chain");
}

/** Stores a fold, yielding to the event loop after every slice. @throws ServiceError `unavailable` */
export async function storeCheckpoint(
  store: Pick<EventStore, 'saveFoldCheckpoint'>,
  kind: CheckpointKind,
  { revision, position, slices }: CapturedFold,
  sealing: Sealing,
  signal: AbortSignal,
): Promise<void> {
  const hash = createHash('sha256');
  const encoded: Uint8Array[] = [];
  for (const slice of slices) {
    hash.update(slice);
    encoded.push(slice);
    await yieldToEventLoop();
    if (signal.aborted) return;
  }
  const seal = Buffer.from(sealLine(kind, sealing, hash.copy().digest('hex')));
  hash.update(seal);
  encoded.push(seal);
  const sha256 = hash.digest('hex');
  const bytes = Buffer.concat(encoded);
  await store.saveFoldCheckpoint(kind.name, { foldVersion: kind.foldVersion, revision, position, sha256, bytes });
}

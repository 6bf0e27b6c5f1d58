/**
 * Fold checkpoints, in one stream per name: chunks of bytes, then a manifest that names them. `$maxCount` bounds the
 * stream; it is raised to hold two checkpoints before a new one is written, so that a crash leaves the old one. These
 * streams are not part of the log. Implements `docs/contract/domain.md#commands-and-events`.
 */
import { createHash } from 'node:crypto';
import { BACKWARDS, binaryEvent, END, jsonEvent, type EventData, type ResolvedEvent } from '@eventstore/db-client';
import { ServiceError } from '../../kernel/errors.js';
import { randomIds } from '../../kernel/ids.js';
import type { Logger } from '../../kernel/logger.js';
import type { FoldCheckpoint } from '../event-store.js';
import type { Connection } from './connection.js';
import { readStreamPage } from './read.js';
import { tuning } from './tuning.js';

const chunkType = 'FoldChunk';
const manifestType = 'FoldCheckpoint';

/** @internal exported for tests */
export const foldStream = (name: string): string => `fold-${name}`;

type Manifest = Omit<FoldCheckpoint, 'bytes'> & {
  readonly set: string;
  readonly chunks: number;
};

/** False for anything that somebody else has written with that type. */
function isManifest(data: unknown): data is Manifest {
  const { chunks, sha256 } = (data ?? {}) as { readonly chunks?: unknown; readonly sha256?: unknown };
  const inReach = Number.isSafeInteger(chunks) && Number(chunks) >= 0 && Number(chunks) < tuning.foldSearchEvents;
  return inReach && typeof sha256 === 'string';
}

export interface FoldAppends {
  /** Appends one event and retries until it is certainly written, possibly twice. @throws ServiceError `unavailable` */
  append(stream: string, event: EventData): Promise<void>;
  /** Sets how many of the newest events of a stream stay readable. @throws ServiceError `unavailable` */
  keep(stream: string, maxCount: number): Promise<void>;
}

/** @returns undefined when there is no complete checkpoint @throws ServiceError `unavailable` */
export async function loadFold(
  connection: Connection,
  name: string,
  logger: Logger,
): Promise<FoldCheckpoint | undefined> {
  const stream = foldStream(name);
  let manifest: Manifest | undefined;
  const chunks = new Map<number, Uint8Array>();
  let from: bigint | typeof END = END;
  for (let searched = 0; searched < tuning.foldSearchEvents;) {
    const back = { direction: BACKWARDS, fromRevision: from, maxCount: tuning.foldPageEvents } as const;
    const page: readonly ResolvedEvent[] = await readStreamPage(connection, stream, back);
    for (const { event } of page) {
      if (event === undefined) continue;
      // Chunks after the last manifest belong to a checkpoint that was never finished.
      if (event.type === manifestType && isManifest(event.data)) manifest ??= event.data;
      if (manifest === undefined || event.type !== chunkType || event.isJson) continue;
      const mark = event.metadata as { readonly set?: string; readonly index?: number } | undefined;
      if (mark?.set === manifest.set && mark.index !== undefined) chunks.set(mark.index, event.data);
    }
    if (manifest !== undefined && chunks.size === manifest.chunks) break;
    const last = page.at(-1)?.event;
    if (last === undefined || last.revision === 0n) break;
    searched += page.length;
    from = last.revision - 1n;
  }
  if (manifest === undefined) return undefined;
  const bytes = Buffer.concat(
    Array.from({ length: manifest.chunks }, (_, index) => chunks.get(index) ?? new Uint8Array()),
  );
  const { foldVersion, revision, position, sha256 } = manifest;
  if (createHash('sha256').update(bytes).digest('hex') !== sha256) {
    logger.warn({ stream }, 'a fold checkpoint is incomplete and is not used');
    return undefined;
  }
  return { foldVersion, revision, position, sha256, bytes };
}

/** @throws ServiceError `unavailable` */
export async function saveFold(appends: FoldAppends, name: string, checkpoint: FoldCheckpoint): Promise<void> {
  const stream = foldStream(name);
  const { foldVersion, revision, position, sha256, bytes } = checkpoint;
  const size = tuning.foldChunkBytes;
  const chunks = Math.ceil(bytes.byteLength / size);
  if (2 * (chunks + 1) > tuning.foldSearchEvents) {
    throw new ServiceError(
      'unavailable',
      `A fold checkpoint of ${bytes.byteLength} bytes is too large for the event store.`,
    );
  }
  await appends.keep(stream, tuning.foldSearchEvents);
  const set = randomIds.next();
  for (let index = 0; index < chunks; index += 1) {
    const data = bytes.subarray(index * size, (index + 1) * size);
    await appends.append(
      stream,
      binaryEvent({ id: randomIds.next(), type: chunkType, data, metadata: { set, index } }) as EventData,
    );
  }
  const manifest: Manifest = { foldVersion, revision, position, sha256, set, chunks };
  await appends.append(stream, jsonEvent({ id: randomIds.next(), type: manifestType, data: manifest }) as EventData);
  // Keeps this checkpoint, the next one, and one left unfinished by a crash.
  await appends.keep(stream, 3 * (chunks + 1));
}

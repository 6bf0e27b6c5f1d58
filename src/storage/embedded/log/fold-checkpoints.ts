/**
 * Fold checkpoints in chunks, so that a large one does not delay appends. Writes the chunks first and then the
 * manifest, which replaces the old one. A crash in between leaves the old checkpoint, plus orphans that the next save
 * removes. Implements `docs/contract/domain.md#commands-and-events`.
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import type { FoldCheckpoint } from '../../event-store.js';
import type { LogBatch, LogEnvironment } from './layout.js';
import { tuning } from '../tuning.js';

interface Manifest extends Omit<FoldCheckpoint, 'bytes'> {
  readonly generation: number;
  readonly chunks: number;
}

const manifestKey = (name: string): Buffer => Buffer.from(`m${name}\u0000`);
const chunkPrefix = (name: string): Buffer => Buffer.from(`c${name}\u0000`);

function chunkKey(name: string, generation: number, index: number): Buffer {
  const place = Buffer.allocUnsafe(8);
  place.writeUInt32BE(generation, 0);
  place.writeUInt32BE(index, 4);
  return Buffer.concat([chunkPrefix(name), place]);
}

function readManifest(value: Buffer | undefined): Manifest | undefined {
  return value === undefined ? undefined : (JSON.parse(value.toString('utf8')) as Manifest);
}

/**
 * Reads the chunks one by one, because a large checkpoint takes a while.
 * @returns undefined when there is no checkpoint or a part is missing, for example because it is being replaced
 */
export async function loadCheckpoint(environment: LogEnvironment, name: string): Promise<FoldCheckpoint | undefined> {
  const manifest = readManifest(environment.get('folds', manifestKey(name)));
  if (manifest === undefined) return undefined;
  const chunks: Buffer[] = [];
  for (let index = 0; index < manifest.chunks; index += 1) {
    const chunk = environment.get('folds', chunkKey(name, manifest.generation, index));
    if (chunk === undefined) return undefined;
    chunks.push(chunk);
    await yieldToEventLoop();
  }
  const { foldVersion, revision, position, sha256 } = manifest;
  return { foldVersion, revision, position, sha256, bytes: Buffer.concat(chunks) };
}

/** Writes through `run`, one group commit per chunk. */
export async function saveCheckpoint(
  environment: LogEnvironment,
  run: (operation: (batch: LogBatch) => void) => Promise<void>,
  name: string,
  checkpoint: FoldCheckpoint,
): Promise<void> {
  const { foldVersion, revision, position, sha256, bytes } = checkpoint;
  const old = readManifest(environment.get('folds', manifestKey(name)));
  const generation = ((old?.generation ?? 0) + 1) % 2 ** 32;
  const size = tuning.foldChunkBytes;
  const chunks = Math.ceil(bytes.byteLength / size);
  for (let index = 0; index < chunks; index += 1) {
    const part = Buffer.from(bytes.subarray(index * size, (index + 1) * size));
    await run((batch) => batch.put('folds', chunkKey(name, generation, index), part));
  }
  await run((batch) => {
    const manifest: Manifest = { foldVersion, revision, position, sha256, generation, chunks };
    batch.put('folds', manifestKey(name), Buffer.from(JSON.stringify(manifest)));
    const prefix = chunkPrefix(name);
    const all = environment.keys('folds', {
      from: prefix,
      to: Buffer.concat([prefix, Buffer.alloc(9, 0xff)]),
      limit: 100_000,
    });
    for (const key of all) {
      const current = key.readUInt32BE(prefix.length) === generation && key.readUInt32BE(prefix.length + 4) < chunks;
      if (!current) batch.remove('folds', key);
    }
  });
}

/**
 * Which layouts each instance reads, as leases: a rebuild drops replaced collections only when nobody reads them.
 * Not the layout itself (`layout.ts`). Implements `docs/architecture.md#read-models`.
 */
import type { Json } from '../../kernel/json.js';
import type { ReadStore } from '../../storage/read-store.js';

/** Kind of the leases; their data has `release` and `numbers`. */
const readers = 'read_model_readers';

/**
 * Announces for `ttlMs` that an instance reads these layouts. Without numbers: it is about to read one, not known yet.
 * @throws ServiceError `unavailable`
 */
export async function announceReading(
  readStore: ReadStore,
  reader: string,
  release: number,
  numbers: readonly number[],
  ttlMs: number,
): Promise<void> {
  await readStore.leases.take(readers, { name: reader, holder: reader, ttlMs, data: { release, numbers } });
}

export async function stopReading(readStore: ReadStore, reader: string): Promise<void> {
  await readStore.leases.release(readers, reader, reader);
}

/** Whether any instance announces that it reads a layout. @throws ServiceError `unavailable` */
export async function anyReader(readStore: ReadStore): Promise<boolean> {
  return (await readStore.leases.list(readers)).length > 0;
}

/** Whether an instance of the release reads another layout, or is about to. @throws ServiceError `unavailable` */
export async function othersRead(readStore: ReadStore, release: number, number: number): Promise<boolean> {
  return (await readStore.leases.list(readers)).some(({ data }) => {
    const reading = data as { readonly release?: Json; readonly numbers?: Json };
    if (reading.release !== release || !Array.isArray(reading.numbers)) return false;
    return reading.numbers.length === 0 || reading.numbers.some((other) => other !== number);
  });
}

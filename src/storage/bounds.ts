/**
 * The bounds of both ports. Every adapter enforces them, so that all stores accept the same writes. The gateway has
 * smaller bounds for its groups of commands. Implements `event-store.ts` (append) and `read-store.ts`.
 */
import { eventBytesMax } from '../kernel/event.js';
import type { CollectionSpec } from './read-store.js';

export const bounds = {
  /** An append answers within this time (`event-store.ts`). */
  appendTimeoutMs: 10_000,
  /** EventStoreDB's default limit of one append. */
  appendBytes: 1024 * 1024,
  /** Events of one command, which is one append; a batch of settings overrides needs far fewer. */
  commandEvents: 10_000,
  /** Bounds of one item of a subscription. */
  itemEvents: 1000,
  itemBytes: 8 * 1024 * 1024,
  documentIdBytes: 256,
  leaseNameBytes: 512,
} as const;

/** @throws RangeError on a bad stream name, a bad number of events, or events too large alone or together */
export function assertAppendable(stream: string, sizes: readonly number[]): void {
  if (stream.length === 0 || stream.length > 256) throw new RangeError('a stream name has 1 to 256 characters');
  if (sizes.length === 0) throw new RangeError('an append needs at least one event');
  if (sizes.length > bounds.commandEvents) {
    throw new RangeError(`an append has at most ${bounds.commandEvents} events, not ${sizes.length}`);
  }
  let sum = 0;
  for (const size of sizes) {
    if (size > eventBytesMax) {
      throw new RangeError(`an event has at most ${eventBytesMax} bytes, not ${size}`);
    }
    sum += size;
  }
  if (sum > bounds.appendBytes) {
    throw new RangeError(`an append has at most ${bounds.appendBytes} bytes, not ${sum}`);
  }
}

/** @throws RangeError on a bad name */
export function assertSpec(spec: CollectionSpec): void {
  if (!/^[a-z_]{1,64}$/.test(spec.name)) throw new RangeError(`a collection is named [a-z_]+, not ${spec.name}`);
}

/** @throws RangeError on an empty id or one that is too long */
export function assertDocumentId(id: string): void {
  const bytes = Buffer.byteLength(id);
  if (bytes === 0 || bytes > bounds.documentIdBytes) {
    throw new RangeError(`a document id has 1 to ${bounds.documentIdBytes} bytes, not ${bytes}`);
  }
}

/** @throws RangeError on an empty kind or name, a kind with a NUL character, or names that are too long together */
export function assertLeaseName(kind: string, name: string): void {
  const bytes = Buffer.byteLength(kind) + 1 + Buffer.byteLength(name);
  if (kind.includes('\0') || kind.length === 0 || name.length === 0 || bytes > bounds.leaseNameBytes) {
    throw new RangeError(`kind and name of a lease have 1 to ${bounds.leaseNameBytes} bytes together`);
  }
}

/**
 * The bounds of both ports. Every adapter enforces them, so that all stores accept the same writes. The gateway has
 * smaller bounds for its groups of commands. Implements `event-store.ts` (append).
 */
import { eventBytesMax } from '../kernel/event.js';

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

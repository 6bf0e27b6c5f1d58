/**
 * The bounds of one append, the same for every adapter, so that what the embedded log takes EventStoreDB takes too.
 * Not the bounds of a group of commands: the gateway keeps to those. Implements `event-store.ts` (append: RangeError).
 */
import { eventBytesMax } from '../kernel/event.js';
import { bounds } from './bounds.js';

/** @throws RangeError unless the name fits, and there are 1 to `commandEvents` events, small enough each and together. */
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

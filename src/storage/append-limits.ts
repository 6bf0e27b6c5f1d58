/**
 * Checks the bounds of one append. They are the same for every adapter, so that EventStoreDB takes what the embedded
 * log takes. Not the smaller bounds of a group of commands, which the gateway keeps. Implements `event-store.ts`
 * (append).
 */
import { eventBytesMax } from '../kernel/event.js';
import { bounds } from './bounds.js';

/** @throws RangeError on a bad stream name, too few or too many events, or events too large alone or together */
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

/**
 * The budget of failed handshakes of one source address: a token is taken before the handshake and returned if it
 * succeeds, so only failures cost. An address over its budget waits in its own line, served at the refill rate.
 * Implements `docs/contract/agent-protocol.md#opensession` ("Budgets are charged for failures").
 */
import type { Clock } from '../../../kernel/clock.js';
import { addressKey } from '../../../kernel/address-key.js';
import { createLru } from '../../../kernel/lru.js';
import { chargeOf } from './charge.js';
import type { Charge } from './charge.js';
import { createLine } from './line.js';
import type { Line } from './line.js';
import { createTokenBucket } from '../../../kernel/token-bucket.js';
import type { TokenBucket } from '../../../kernel/token-bucket.js';
import { tuning } from '../tuning.js';

export interface AddressBudget {
  /** Charges the address (IPv6: its /64) if that is possible at once. */
  take(address: string): Charge | undefined;
  /** As `take`, but waits in line; undefined if that was not possible within `waitMs`. */
  charge(address: string, waitMs: number): Promise<Charge | undefined>;
  close(): void;
}

interface Entry {
  readonly bucket: TokenBucket;
  /** Created when a caller has to wait, dropped when nobody waits any more. */
  line: Line | undefined;
}

export function createAddressBudget(perSecond: number, burst: number, clock: Clock): AddressBudget {
  const entries = createLru<string, Entry>({ maxEntries: tuning.addressBudgets });
  const lines = new Set<Line>();
  let closed = false;

  const lineOf = (entry: Entry): Line => {
    entry.line ??= createLine({
      delay: () => entry.bucket.wait(clock.monotonic()),
      take: () => entry.bucket.take(clock.monotonic()),
      maxWaiting: tuning.waitingPerAddress,
    });
    lines.add(entry.line);
    return entry.line;
  };
  const entryOf = (address: string): Entry =>
    entries.getOrCreate(addressKey(address), () => ({
      bucket: createTokenBucket(perSecond, burst, clock.monotonic()),
      line: undefined,
    }));
  const charged = (entry: Entry): Charge =>
    chargeOf(() => {
      entry.bucket.give(clock.monotonic());
      entry.line?.poke();
    });
  const takeOf = (entry: Entry): Charge | undefined => {
    const now = clock.monotonic();
    if (closed || entry.line !== undefined || entry.bucket.wait(now) > 0) return undefined;
    entry.bucket.take(now);
    return charged(entry);
  };

  return {
    take: (address) => takeOf(entryOf(address)),
    async charge(address, waitMs) {
      if (closed) return undefined;
      const entry = entryOf(address);
      const atOnce = takeOf(entry);
      if (atOnce !== undefined) return atOnce;
      const line = lineOf(entry);
      const passed = await line.enter(waitMs);
      if (line.waiting === 0) {
        lines.delete(line);
        if (entry.line === line) entry.line = undefined;
      }
      return passed ? charged(entry) : undefined;
    },
    close() {
      closed = true;
      for (const line of lines) line.close();
    },
  };
}

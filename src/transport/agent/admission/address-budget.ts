/**
 * The budget of failed handshakes of one source address: a token is taken before the handshake and returned if it
 * succeeds, so only failures cost. An address over its budget waits in its own line, served at the refill rate.
 * Implements `docs/contract/agent-protocol.md#opensession` ("Budgets are charged for failures").
 */
import type { Clock } from '../../../kernel/clock.js';
import { addressKey } from '../../../kernel/address-key.js';
import { createLru } from '../../../kernel/lru.js';
import { createLine } from './line.js';
import type { Line } from './line.js';
import { createTokenBucket } from './token-bucket.js';
import type { TokenBucket } from './token-bucket.js';
import { tuning } from '../tuning.js';

interface AddressCharge {
  /** Returns the token: the attempt was no failure of this address. Only the first call counts. */
  refund(): void;
}

export interface AddressBudget {
  /** Charges the address (IPv6: its /64); undefined if that was not possible within `waitMs`. */
  charge(address: string, waitMs: number): Promise<AddressCharge | undefined>;
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
  const chargeOf = (entry: Entry): AddressCharge => {
    let refunded = false;
    return {
      refund() {
        if (refunded) return;
        refunded = true;
        entry.bucket.give(clock.monotonic());
        entry.line?.poke();
      },
    };
  };

  return {
    async charge(address, waitMs) {
      if (closed) return undefined;
      const key = addressKey(address);
      let entry = entries.get(key);
      if (entry === undefined) {
        entry = { bucket: createTokenBucket(perSecond, burst, clock.monotonic()), line: undefined };
        entries.set(key, entry);
      }
      if (entry.line === undefined && entry.bucket.wait(clock.monotonic()) === 0) {
        entry.bucket.take(clock.monotonic());
        return chargeOf(entry);
      }
      const line = lineOf(entry);
      const passed = await line.enter(waitMs);
      if (line.waiting === 0) {
        lines.delete(line);
        if (entry.line === line) entry.line = undefined;
      }
      return passed ? chargeOf(entry) : undefined;
    },
    close() {
      closed = true;
      for (const line of lines) line.close();
    },
  };
}

/**
 * The budgets of OpenSession. Failed handshakes are charged to their source address, or to the pair of address and node
 * if that pair recently had a session; authenticated offers are charged to their node. A token is taken before the work
 * and returned if the work succeeds. Faulty calls are counted here as well. Implements
 * `docs/contract/agent-protocol.md#opensession`, with "Calls that do not parse".
 */
import type { Clock } from '../../../kernel/clock.js';
import { addressKey } from '../../../kernel/addresses.js';
import { createLru } from '../../../kernel/lru.js';
import { createLine, type Line } from './line.js';
import { createTokenBucket, type TokenBucket } from '../../../kernel/token-bucket.js';
import { joinTokenIn } from '../../../kernel/ids.js';
import { limits } from '../../../kernel/limits.js';
import { getOrMake } from '../../../kernel/maps.js';
import type { SampledLog } from '../../../kernel/sampled-log.js';
import type { AgentConnection } from '../../listener/connection.js';

/** How many addresses and nodes have remembered budgets. */
const addressBudgets = 100_000;
const nodeBudgets = 100_000;
/** How many pairs of address and node that had a session are remembered. */
const provenPairs = 100_000;
/** Failures of such a pair while its address is over budget: burst, and per second. @internal exported for tests */
export const provenPairBurst = 5;
/** @internal exported for tests */
export const provenPairFailuresPerSecond = 0.2;
/** OpenSession calls of one address that may wait for its budget. */
const waitingPerAddress = 16_384;

/** Returns what was charged; called once at most. */
type Refund = () => void;

interface Entry {
  readonly bucket: TokenBucket;
  /** Created when a caller has to wait, dropped when nobody waits any more. */
  line: Line | undefined;
}

export type AddressBudget = ReturnType<typeof createAddressBudget>;

export function createAddressBudget(perSecond: number, burst: number, clock: Clock) {
  const entries = createLru<Entry>(addressBudgets);
  const lines = new Set<Line>();
  let closed = false;

  const lineOf = (entry: Entry): Line => {
    entry.line ??= createLine({
      delay: () => entry.bucket.wait(clock.monotonic()),
      take: () => entry.bucket.take(clock.monotonic()),
      maxWaiting: waitingPerAddress,
    });
    lines.add(entry.line);
    return entry.line;
  };
  const entryOf = (address: string): Entry =>
    getOrMake(entries, addressKey(address), () => ({
      bucket: createTokenBucket(perSecond, burst, clock.monotonic()),
      line: undefined,
    }));
  const refundOf = (entry: Entry): Refund => {
    return () => {
      entry.bucket.give(clock.monotonic());
      entry.line?.poke();
    };
  };

  return {
    /** Charges the address (IPv6: its /64) if possible at once. */
    take(address: string): Refund | undefined {
      const [entry, now] = [entryOf(address), clock.monotonic()];
      if (closed || entry.line !== undefined || entry.bucket.wait(now) > 0) return undefined;
      entry.bucket.take(now);
      return refundOf(entry);
    },
    /** Like `take`, but waits in line; undefined if that was not possible within `waitMs`. */
    async charge(address: string, waitMs: number): Promise<Refund | undefined> {
      if (closed) return undefined;
      const entry = entryOf(address);
      const line = lineOf(entry);
      const passed = await line.enter(waitMs);
      if (line.waiting === 0) {
        lines.delete(line);
        if (entry.line === line) entry.line = undefined;
      }
      return passed ? refundOf(entry) : undefined;
    },
    close(): void {
      closed = true;
      for (const line of lines) line.close();
    },
  };
}

interface Pair {
  provenAt: number;
  readonly failures: TokenBucket;
}

export type ProvenPairs = ReturnType<typeof createProvenPairs>;

export function createProvenPairs(clock: Clock, maxEntries: number = provenPairs) {
  const pairs = createLru<Pair>(maxEntries);
  const keyOf = (address: string, nodeId: string): string => `${addressKey(address)} ${nodeId}`;
  return {
    /** The node has proven a session from this address. */
    proven(address: string, nodeId: string): void {
      const now = clock.monotonic();
      const pair = getOrMake(pairs, keyOf(address, nodeId), () => ({
        provenAt: now,
        failures: createTokenBucket(provenPairFailuresPerSecond, provenPairBurst, now),
      }));
      pair.provenAt = now;
    },
    /** Charges the budget of this pair; undefined if the pair is not proven or has used up its budget of failures. */
    take(address: string, nodeId: string): Refund | undefined {
      const pair = pairs.get(keyOf(address, nodeId));
      if (pair === undefined) return undefined;
      const now = clock.monotonic();
      if (now - pair.provenAt >= limits.agent.provenPairMs || pair.failures.wait(now) > 0) return undefined;
      pair.failures.take(now);
      return () => pair.failures.give(clock.monotonic());
    },
  };
}

/** Charges a node, or a join token. @returns false if it is over its budget */
export type ChargeNode = (nodeId: string) => boolean;

const { nodeOffersPerSecond: perSecond, nodeOffersBurst: burst } = limits.agent;
const nodeOffers = { perSecond, burst };

/**
 * Nothing is refunded before a session has lived for 30 seconds; otherwise the holder of a PSK could open a hundred a
 * second. By then the budget has refilled by itself, so no refund is needed at all.
 */
export function createNodeBudget(clock: Clock): ChargeNode {
  const buckets = createLru<TokenBucket>(nodeBudgets);
  return (nodeId) => {
    const now = clock.monotonic();
    const { perSecond, burst } = joinTokenIn(nodeId) === undefined ? nodeOffers : limits.fleet.joinTokens.opens;
    const bucket = getOrMake(buckets, nodeId, () => createTokenBucket(perSecond, burst, now));
    if (bucket.wait(now) > 0) return false;
    bucket.take(now);
    return true;
  };
}

/**
 * Counts calls that make no sense to this service: unparsable bytes, another `protocol_version`, an unknown method or content
 * type, a Control stream without a session. Each counts as a failure of its address, and the fifth on a connection ends
 * the connection, so that nobody can make the service read and answer them endlessly. A call's handlers decide what
 * makes it faulty.
 * @returns a function for each such call that is over, which says whether its connection must be ended; `unknown`: no handler
 *   saw the call, so it is noted here
 */
export function createFaultyCalls(addresses: Pick<AddressBudget, 'take'>, refusals: Pick<SampledLog, 'note'>) {
  const counts = new WeakMap<AgentConnection, number>();
  return (connection: AgentConnection, verdict: 'faulty' | 'unknown'): boolean => {
    const address = connection.remoteAddress;
    // Without waiting: a finished call can only be charged, and an address over its budget cannot be charged further.
    addresses.take(address);
    if (verdict === 'unknown') {
      refusals.note({ reason: 'call_unknown', address }, 'a call was not one that this service can read');
    }
    const count = (counts.get(connection) ?? 0) + 1;
    counts.set(connection, count);
    // Calls that were open at the same time as the fifth are counted after it.
    if (count !== limits.agent.faultyCallsPerConnection || connection.closed) return false;
    refusals.note({ reason: 'connection_faulty_calls', address }, 'a connection was ended for its faulty calls');
    return true;
  };
}

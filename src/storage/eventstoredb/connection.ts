/**
 * The client objects of one adapter: one for appends, one for reads and subscriptions. A client that does not answer is
 * disposed of, together with its calls, before the next one replaces it. Also bounds the open calls of the whole
 * process, because a connection carries 100 streams and further calls hang without an error.
 */
import {
  EventStoreDBClient,
  type DNSClusterOptions,
  type GossipClusterOptions,
  type SingleNodeOptions,
} from '@eventstore/db-client';
import { sleep, withDeadline } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import { createSemaphore } from '../../kernel/semaphore.js';
import type { StoreAddress } from './address.js';
import { tuning as standard, type Tuning } from './tuning.js';

/** A client while it is in use. */
export interface Lease {
  readonly client: EventStoreDBClient;
  /** The client was discarded. Its calls end, some of them as if they were complete. */
  readonly discarded: boolean;
  /** A read that requires the leader has succeeded. */
  reached: boolean;
}

type OwnLease = { -readonly [field in keyof Lease]: Lease[field] };

export interface Connection {
  readonly tuning: Tuning;
  /** The current client, once its predecessor has been disposed of. @throws ServiceError `unavailable` when closed */
  lease(): Promise<Lease>;
  /** Disposes of a client, unless it was discarded before. */
  discard(lease: Lease, cause: string): Promise<void>;
  close(): Promise<void>;
}

type Settings = DNSClusterOptions | GossipClusterOptions | SingleNodeOptions;

/**
 * The settings of a client. The adapter depends on some of them, whatever the URL says.
 * @internal exported for tests
 */
export function clientSettings({ hosts, dnsDiscovery, options }: StoreAddress, tuning: Tuning = standard): Settings {
  const { keepaliveMs, gossipSeconds } = tuning;
  const forced = {
    throwOnAppendFailure: true,
    // Pings are the only sign that a subscription's server hangs. Below ten seconds, the client warns on the console.
    keepAliveInterval: keepaliveMs,
    keepAliveTimeout: keepaliveMs,
  };
  const { maxDiscoverAttempts, discoveryInterval, gossipTimeout = gossipSeconds, ...others } = options;
  const [endpoint] = hosts;
  if (!dnsDiscovery && hosts.length === 1) return { ...others, ...forced, endpoint };
  const discovery = {
    ...others,
    ...forced,
    nodePreference: 'leader',
    // The client may be asking a hanging node for the addresses of the others.
    gossipTimeout,
    ...(maxDiscoverAttempts === undefined ? {} : { maxDiscoverAttempts }),
    ...(discoveryInterval === undefined ? {} : { discoveryInterval }),
  } as const;
  return dnsDiscovery ? { ...discovery, discover: endpoint } : { ...discovery, endpoints: [...hosts] };
}

function createClient(settings: Settings, { credentials, user }: StoreAddress): EventStoreDBClient {
  // One branch per overload.
  if ('endpoint' in settings) return new EventStoreDBClient(settings, credentials, user);
  if ('endpoints' in settings) return new EventStoreDBClient(settings, credentials, user);
  return new EventStoreDBClient(settings, credentials, user);
}

/** @param what a name for its calls, for the log */
export function openConnection(
  address: StoreAddress,
  what: string,
  logger: Logger,
  tuning: Tuning = standard,
): Connection {
  const settings = clientSettings(address, tuning);
  const create = (): OwnLease => ({ client: createClient(settings, address), discarded: false, reached: false });
  let lease: OwnLease | undefined;
  let disposing: Promise<void> = Promise.resolve();
  let closed = false;

  async function dispose({ client }: Lease): Promise<void> {
    await withDeadline(client.dispose(), tuning.disposeMs);
    // A cancelled stream emits its error one turn of the event loop later.
    await sleep(1);
  }

  return {
    tuning,
    async lease() {
      await disposing;
      if (closed) throw new ServiceError('unavailable', 'The event store is closed.');
      lease ??= create();
      return lease;
    },
    async discard(old, cause) {
      if (lease === undefined || lease !== old) return disposing;
      lease.discarded = true;
      lease = undefined;
      logger.warn({ cause }, `the event store client for ${what} is discarded and replaced`);
      disposing = dispose(old).catch(() => undefined);
      return disposing;
    },
    async close() {
      closed = true;
      const last = lease;
      if (last !== undefined) last.discarded = true;
      lease = undefined;
      await disposing;
      if (last !== undefined) await dispose(last).catch(() => undefined);
    },
  };
}

interface Places {
  /**
   * @returns a function that gives the slot back; calling it again does nothing
   * @throws ServiceError `unavailable` when no slot became free in time
   */
  take(): Promise<() => void>;
  taken(): number;
}

/** @internal exported for tests */
export function createPlaces(count: number, waitMs: number, what: string): Places {
  const semaphore = createSemaphore({ places: count, waitMs });
  return {
    taken: () => semaphore.taken,
    async take() {
      const leave = await semaphore.enter();
      if (leave !== undefined) return leave;
      throw new ServiceError('unavailable', `The event store has ${count} open ${what}, and none of them has ended.`);
    },
  };
}

const { reads, subscriptions, appendsAtOnce, placeWaitMs } = standard;
export const readPlaces = createPlaces(reads, placeWaitMs, 'reads');
export const subscriptionPlaces = createPlaces(subscriptions, placeWaitMs, 'subscriptions');
export const appendPlaces = createPlaces(appendsAtOnce, placeWaitMs, 'appends');

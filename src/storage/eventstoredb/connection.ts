/**
 * The client objects of one adapter: one for appends, one for reads and subscriptions. A broken client is fully
 * disposed of before the next one replaces it: the client package keeps the appends in flight of all clients in one
 * table, so an old client that fails late would reject appends of the new one. Not the calls themselves; each has its
 * own file.
 */
import { EventStoreDBClient } from '@eventstore/db-client';
import { sleep, withDeadline } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import { tuning as standard, type Tuning } from './tuning.js';

/** A client while it is in use. */
export interface Lease {
  readonly client: EventStoreDBClient;
  /** The client was discarded. Its calls end, and some of them end as if they were complete. */
  readonly discarded: boolean;
}

type OwnLease = { -readonly [field in keyof Lease]: Lease[field] };

export interface Connection {
  readonly tuning: Tuning;
  /** The current client, once its predecessor has been disposed of. @throws ServiceError `unavailable` when closed */
  lease(): Promise<Lease>;
  /** Disposes of a client. Does nothing for one that was discarded before. */
  discard(lease: Lease, cause: string): Promise<void>;
  close(): Promise<void>;
}

const forced = /^(throwOnAppendFailure|nodePreference|keepAliveInterval|keepAliveTimeout)=/i;

/**
 * Sets the options that the adapter depends on, whatever the URL says.
 * @throws TypeError for a malformed URL; the message does not repeat it, as it may contain a password
 * @internal exported for tests
 */
export function connectionString(url: string, tuning: Tuning = standard): string {
  if (!/^esdb(\+discover)?:\/\/[^/?]+/.test(url)) {
    throw new TypeError('the event store URL must look like esdb://host:2113 or esdb+discover://host:2113');
  }
  const [address = '', query = ''] = url.split('?');
  const given = query.split('&').filter((pair) => pair !== '' && !forced.test(pair));
  const isGiven = (name: string): boolean => given.some((pair) => pair.toLowerCase().startsWith(`${name}=`));
  const { keepaliveMs, gossipSeconds } = tuning;
  return `${address}?${[
    ...given,
    'throwOnAppendFailure=true',
    'nodePreference=leader',
    // Pings are the only sign that a subscription's server hangs. Below ten seconds the client warns on the console.
    `keepAliveInterval=${keepaliveMs}`,
    `keepAliveTimeout=${keepaliveMs}`,
    // A node that hangs may be the one that is asked for the addresses of the others.
    ...(isGiven('gossiptimeout') ? [] : [`gossipTimeout=${gossipSeconds}`]),
  ].join('&')}`;
}

export function openConnection(url: string, what: string, logger: Logger, tuning: Tuning = standard): Connection {
  const text = connectionString(url, tuning);
  const create = (): OwnLease => ({ client: EventStoreDBClient.connectionString(text), discarded: false });
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

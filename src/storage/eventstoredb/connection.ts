/**
 * The client objects of one adapter: one for appends, one for reads and subscriptions. A client that cannot go on is
 * thrown away, wholly, before the next takes its place: the client package keeps the appends in flight of all clients in
 * one table, so an old one that fails late would reject those of the new. Not the calls: each has its own file.
 */
import { EventStoreDBClient } from '@eventstore/db-client';
import { sleep, withDeadline } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import { tuning } from './tuning.js';

/** A client while it is in use. */
export interface Lease {
  readonly client: EventStoreDBClient;
  /** It was thrown away: its calls end, some of them as if they had come to their end. */
  readonly discarded: boolean;
}

type OwnLease = { -readonly [field in keyof Lease]: Lease[field] };

export interface Connection {
  /** The running client. @throws ServiceError `unavailable` when closed, or while the old one is being disposed of. */
  lease(): Promise<Lease>;
  /** Throws a client away; a no-op for one that was thrown away before. */
  discard(lease: Lease, cause: string): Promise<void>;
  close(): Promise<void>;
}

const forced = /^(throwOnAppendFailure|nodePreference|keepAliveInterval|keepAliveTimeout)=/i;

/**
 * Sets what the adapter depends on, whatever the URL says.
 * @throws TypeError for a URL that is none; the message does not repeat it, for it may hold a password
 */
export function connectionString(url: string): string {
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
    // Nothing else tells a subscription that its server hangs, and below ten seconds the client warns on the console.
    `keepAliveInterval=${keepaliveMs}`,
    `keepAliveTimeout=${keepaliveMs}`,
    // A node that hangs is asked for the others' addresses first as often as not.
    ...(isGiven('gossiptimeout') ? [] : [`gossipTimeout=${gossipSeconds}`]),
  ].join('&')}`;
}

export function openConnection(url: string, what: string, logger: Logger): Connection {
  const text = connectionString(url);
  const create = (): OwnLease => ({ client: EventStoreDBClient.connectionString(text), discarded: false });
  let lease: OwnLease | undefined;
  let disposing: Promise<void> = Promise.resolve();
  let closed = false;

  async function dispose({ client }: Lease): Promise<void> {
    await withDeadline(client.dispose(), tuning.disposeMs);
    // The error that a cancelled stream ends with comes a turn later.
    await sleep(1);
  }

  return {
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
      logger.warn({ cause }, `the event store client for ${what} is thrown away and replaced`);
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

/**
 * The lease of an instance: that it is alive, how far it has projected, which compiler it runs, up to where it has closed
 * revoked sessions and refuses ended tokens. The other instances read it before they purge tombstones or answer that
 * sessions or tokens have ended.
 * Implements `docs/contract/agent-protocol.md#several-instances`.
 */
import { startLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { timestamp } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import type { Json } from '../kernel/json.js';
import type { Logger } from '../kernel/logger.js';
import type { LeaseClaim, ReadStore } from '../storage/read-store.js';
import { tuning } from './tuning.js';

const instanceKind = 'instances';

export interface InstanceLeaseDeps {
  readonly readStore: Pick<ReadStore, 'leases'>;
  readonly instanceId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Log position that every read model of this instance holds. */
  position(): number;
  /** Revision of `svc-fleet` up to which this instance has closed the sessions of revoked nodes. */
  revokedUpTo(): number;
  /** Revision of `svc-accounts` up to which this instance refuses the tokens that password changes have ended. */
  accounts(): number;
  readonly compilerVersion: number;
  /** Heartbeats that this instance took in the last minute. */
  heartbeatsPerMinute(): number;
  /** No other process can have this read store open, so every other lease in it is that of a process that has died. */
  readonly alone: boolean;
}

export interface InstanceLease {
  /** Renews it at once, with the newest values. */
  publish(): Promise<void>;
  /** Ends the lease at once. Never rejects. */
  close(): Promise<void>;
}

export interface LiveInstance {
  readonly instance_id: string;
  readonly position: number;
  /** Revision of `svc-fleet` up to which it has closed the sessions of revoked nodes. */
  readonly revoked_up_to: number;
  /** Null for an instance of a release that does not state it. */
  readonly accounts: number | null;
  readonly compiler_version: number;
  /** As of its last renewal; 0 for an instance of a release that does not say. */
  readonly heartbeats_per_minute: number;
  /** RFC 3339. */
  readonly started_at: string;
}

/** Takes the lease and renews it until closed. @throws ServiceError `unavailable` */
export async function startInstanceLease(deps: InstanceLeaseDeps): Promise<InstanceLease> {
  const { instanceId, logger } = deps;
  const { leases } = deps.readStore;
  const startedAt = timestamp(deps.clock.now());
  const claim = (): LeaseClaim => ({
    name: instanceId,
    holder: instanceId,
    ttlMs: tuning.instanceLeaseMs,
    data: {
      position: deps.position(),
      revoked_up_to: deps.revokedUpTo(),
      accounts: deps.accounts(),
      compiler_version: deps.compilerVersion,
      heartbeats_per_minute: deps.heartbeatsPerMinute(),
      started_at: startedAt,
    },
  });
  // Nobody else has this id, so the lease can always be taken, also after it was purged.
  const take = (): Promise<void> => leases.take(instanceKind, claim());
  // Otherwise this instance would wait for one that was killed, until its lease is over.
  if (deps.alone) await releaseOthers(leases, instanceId);
  await take();
  const complain = (error: unknown): void =>
    logger.warn({ error: errorText(error) }, 'the lease of this instance was not renewed');
  const loop = startLoop(
    tuning.instanceLeaseRenewMs,
    async () => {
      await take();
      await leases.purge(instanceKind, tuning.instancePurgeAfterMs);
    },
    complain,
  );
  return {
    publish: take,
    async close() {
      await loop.close();
      await leases.release(instanceKind, instanceId, instanceId).catch(complain);
    },
  };
}

async function releaseOthers(leases: ReadStore['leases'], instanceId: string): Promise<void> {
  for (const { name } of await leases.list(instanceKind))
    if (name !== instanceId) await leases.release(instanceKind, name, name);
}

/** Every live instance. @throws ServiceError `unavailable` */
export async function liveInstances(readStore: Pick<ReadStore, 'leases'>): Promise<readonly LiveInstance[]> {
  return (await readStore.leases.list(instanceKind)).flatMap(({ name, data }) => {
    const { position, revoked_up_to, accounts, compiler_version, ...rest } = data as { readonly [field: string]: Json };
    if (typeof position !== 'number' || typeof compiler_version !== 'number' || typeof revoked_up_to !== 'number')
      return [];
    return [
      {
        instance_id: name,
        position,
        revoked_up_to,
        accounts: typeof accounts === 'number' ? accounts : null,
        compiler_version,
        heartbeats_per_minute: typeof rest['heartbeats_per_minute'] === 'number' ? rest['heartbeats_per_minute'] : 0,
        started_at: String(rest['started_at']),
      },
    ];
  });
}

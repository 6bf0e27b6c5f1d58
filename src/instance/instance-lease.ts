/**
 * The lease of an instance: what others must know of it before they report that sessions or tokens have ended.
 * Implements `docs/contract/agent-protocol.md#several-instances`.
 */
import { startLoop } from '../kernel/background.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { fromJson } from '../kernel/json.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import type { Activity } from '../reports/port.js';
import type { LeaseClaim, ReadStore } from '../storage/read-store.js';

const instanceKind = 'instances';
const leaseMs = 10_000;
const renewEveryMs = 3_000;
/** A lease is deleted this long after its instance has ended. */
const purgeAfterMs = 24 * 60 * 60_000;

export interface InstanceLeaseDeps {
  readonly readStore: Pick<ReadStore, 'leases'>;
  readonly instanceId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Revision of `svc-fleet` up to which this instance has closed the sessions of revoked nodes. */
  revokedUpTo(): number;
  /** Revision of `svc-accounts` up to which this instance refuses tokens ended by password changes. */
  accounts(): number;
  readonly compilerVersion: number;
  /** What this instance received from agents lately. */
  activity(): Activity;
  /** Called with all live instances after each renewal. */
  onRenewed?(instanceIds: readonly string[]): void;
}

export interface InstanceLease {
  /** The other live instances, as of the last renewal. */
  others(): readonly LiveInstance[];
  /** Renews the lease at once, with current values. */
  publish(): Promise<void>;
  /** Ends the lease at once. Never rejects. */
  close(): Promise<void>;
}

export interface LiveInstance {
  readonly instance_id: string;
  /** Revision of `svc-fleet` up to which it has closed the sessions of revoked nodes. */
  readonly revoked_up_to: number;
  /** Revision of `svc-accounts` up to which it refuses ended tokens. */
  readonly accounts: number;
  readonly compiler_version: number;
  /** As of its last renewal. */
  readonly activity: Activity;
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
    ttlMs: leaseMs,
    data: {
      revoked_up_to: deps.revokedUpTo(),
      accounts: deps.accounts(),
      compiler_version: deps.compilerVersion,
      activity: { ...deps.activity() },
      started_at: startedAt,
    },
  });
  // Nobody else has this id, so the lease can always be taken, even after it was purged.
  // One after the other, so that what is written last is what was read last.
  let taking = Promise.resolve();
  const take = (): Promise<void> =>
    (taking = taking.catch(() => undefined).then(() => leases.take(instanceKind, claim())));
  await take();
  const readOthers = async (): Promise<readonly LiveInstance[]> => {
    const live = await liveInstances(deps.readStore);
    deps.onRenewed?.(live.map(({ instance_id }) => instance_id));
    return live.filter(({ instance_id }) => instance_id !== instanceId);
  };
  let others = await readOthers();
  const complain = logsWarning(logger, 'the lease of this instance was not renewed');
  const loop = startLoop(
    renewEveryMs,
    async () => {
      await take();
      others = await readOthers();
      await leases.purge(instanceKind, purgeAfterMs);
    },
    complain,
  );
  return {
    others: () => others,
    publish: take,
    async close() {
      await loop.close();
      // One that arrives late would bring the lease back.
      await taking.catch(() => undefined);
      await leases.release(instanceKind, instanceId, instanceId).catch(complain);
    },
  };
}

/** Every live instance. @throws ServiceError `unavailable` */
export async function liveInstances(readStore: Pick<ReadStore, 'leases'>): Promise<readonly LiveInstance[]> {
  const leases = await readStore.leases.list(instanceKind);
  return leases.map(({ name, data }) => ({
    ...fromJson<Omit<LiveInstance, 'instance_id'>>(data),
    instance_id: name,
  }));
}

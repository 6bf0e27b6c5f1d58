/**
 * This instance among the others. Combines the instance's lease and the waits for other instances, because the waits
 * read the leases, and the lease states what others wait for.
 */
import { logsWarning } from '../kernel/logger.js';
import type { listenerCounters } from '../reports/counted-rows.js';
import type { Activity } from '../reports/port.js';
import { liveInstances, startInstanceLease, type InstanceLeaseDeps } from './instance-lease.js';
import { createRevocations, tokensEnded, type RevocationsDeps } from './revocations.js';
import { sentenceAbout, watchSharing } from './sharing.js';

export interface MembershipDeps
  extends Omit<InstanceLeaseDeps, 'revokedUpTo' | 'onRenewed'>, Pick<RevocationsDeps, 'revision' | 'sessionsEnded'> {
  /** Calls back for each password change that this instance has read. */
  onTokensEnded(listener: () => void): void;
  /** Calls back for each node that was deleted or whose PSK was replaced. */
  onRevoked(listener: (nodeId: string) => void): void;
  /** Calls back for each session that an instance has opened. @param at RFC 3339 */
  onSessionOpened(listener: (instanceId: string, at: string) => void): void;
}

export interface Membership {
  /** True once every live instance has closed the sessions of a node revoked at a revision; false after `timeoutMs`. */
  sessionsEnded(nodeId: string, timeoutMs: number, revision?: number): Promise<boolean>;
  /** True once every live instance refuses tokens ended at a revision of `svc-accounts`; false after `timeoutMs`. */
  tokensEnded(revision: number, timeoutMs: number): Promise<boolean>;
  /** What all live instances received from agents lately; for the others, as of a few seconds ago. */
  activity(): Activity;
  /** Sentences about instances that do not share this read store. */
  problems(): readonly string[];
  /** Ends the lease. Never rejects. */
  close(): Promise<void>;
}

/** @throws ServiceError `unavailable` */
export async function joinCluster(deps: MembershipDeps): Promise<Membership> {
  const { readStore, instanceId, clock, logger } = deps;
  const waits = { instanceId, clock, logger, liveInstances: () => liveInstances(readStore) };
  const revocations = createRevocations({
    ...waits,
    revision: deps.revision,
    sessionsEnded: deps.sessionsEnded,
    publish: async () => (await lease).publish(),
  });
  deps.onRevoked(revocations.revoked);
  deps.onTokensEnded(() => {
    lease.then(({ publish }) => publish()).catch(logsWarning(logger, 'the end of tokens could not be published'));
  });
  const sharing = watchSharing(instanceId, clock);
  deps.onSessionOpened(sharing.wrote);
  const onRenewed = (live: readonly string[]): void =>
    sharing.check(live).forEach((id) => logger.error({ instance: id }, sentenceAbout(id)));
  const lease = startInstanceLease({ ...deps, revokedUpTo: revocations.closedUpTo, onRenewed });
  const { close, others } = await lease;
  return {
    sessionsEnded: revocations.ended,
    tokensEnded: (revision, timeoutMs) => tokensEnded(waits, revision, timeoutMs),
    problems: sharing.problems,
    activity: () => others().reduce((sum, { activity }) => added(sum, activity), deps.activity()),
    close,
  };
}

function added(a: Activity, b: Activity): Activity {
  const sum = (name: (typeof listenerCounters)[number]): number => a.last_5m[name] + b.last_5m[name];
  return {
    heartbeats_per_minute: a.heartbeats_per_minute + b.heartbeats_per_minute,
    last_5m: {
      bytes_in: sum('bytes_in'),
      bytes_out: sum('bytes_out'),
      total_sessions: sum('total_sessions'),
      error_sessions: sum('error_sessions'),
    },
  };
}

/**
 * Faults of the test server, all of them seen on real servers. Plain data, so that it can be sent as a line of JSON.
 */

/** A release that catches up differently from 23.10. */
export type LaterServer = '24.10' | '25.0';

export type AppendFault =
  /** Neither written nor answered. */
  | { readonly kind: 'silent' }
  /** Written, never answered. */
  | { readonly kind: 'answer_lost' }
  /** Not written, answered with Timeout. */
  | { readonly kind: 'deadline' }
  /** Answered with Timeout and written later. */
  | { readonly kind: 'commit_timeout'; readonly laterMs: number }
  /** A leader without a majority: answered with a commit timeout after a while, and never written. */
  | { readonly kind: 'no_quorum'; readonly ms: number }
  /** Not written; answered at once, or later. */
  | { readonly kind: 'not_ready'; readonly ms?: number }
  /** Ends the whole call; nothing is written. */
  | { readonly kind: 'not_leader'; readonly host: string; readonly port: number }
  /** Written, answered without a position. */
  | { readonly kind: 'no_position' }
  /** Cuts the connection, before or after the events are written. */
  | { readonly kind: 'cut'; readonly written: boolean }
  /** Written and answered later. */
  | { readonly kind: 'late'; readonly ms: number }
  /** Written at once, answered later. */
  | { readonly kind: 'answer_late'; readonly ms: number }
  /** Written at once, answered when the server is told to release its answers. */
  | { readonly kind: 'held' }
  /** Ends the whole call with OK; nothing is written or answered. */
  | { readonly kind: 'end_call' }
  /** Resets the whole call without a status, before or after the events are written. */
  | { readonly kind: 'reset_call'; readonly written: boolean };

/** A node as gossip tells of it. */
export interface Member {
  readonly port: number;
  readonly state: 'Leader' | 'Follower' | 'Unknown';
  readonly alive: boolean;
}

export interface Faults {
  /** Faults of the next appends to any stream, one each. */
  appends: AppendFault[];
  /** Chooses a fault when that list is empty. */
  choose: (() => AppendFault | undefined) | undefined;
  /** Makes this node a follower: calls that require the leader are referred to it. */
  leader: { readonly host: string; readonly port: number } | undefined;
  /**
   * Knows no leader: refuses every append, and every read and subscription that requires the leader; goes on to answer
   * those that do not.
   */
  notReady: boolean;
  /** What gossip tells; undefined: this node, and its leader. */
  members: readonly Member[] | undefined;
  /** Drops a subscription as too slow after so many live events; 0 for never. */
  dropAfter: number;
  /** Ends a subscription without an error after so many live events; 0 for never. */
  endAfter: number;
  /** Repeats caughtUp after live events, like 24.2. */
  caughtUpRepeats: boolean;
  /** Leaves subscriptions and reads without any answer. */
  silentReads: boolean;
  /**
   * Cut off from the others: reads and subscriptions see the log up to this position; subscriptions go live and get
   * nothing more. For good: what they have missed is not delivered when this is unset.
   */
  cutOffAt: number | undefined;
  silentFeatures: boolean;
  /** Who may do anything; all others are refused. Undefined: everybody may. */
  admin: { readonly username: string; readonly password: string } | undefined;
  /** A user whose password is right, and who may do nothing. */
  stranger: { readonly username: string; readonly password: string } | undefined;
  /** The answer to a feature request. */
  featuresFail: { readonly code: number; readonly details: string } | undefined;
  /** Never answers who leads, like a node that hangs. */
  silentGossip: boolean;
  /** How far the server's clock is ahead of the client's. */
  clockAheadMs: number;
  /** Answers carry the server's time. */
  dates: boolean;
  /** Reports checkpoints at a position beyond 2^53. */
  wildCheckpoints: boolean;
  /** Writes the commit position of every delivered event as "no position". */
  eventsNowhere: boolean;
  /** Catches up filtered subscriptions like a server later than 23.10. */
  later: LaterServer | undefined;
  /** Gossip knows no live node. */
  noNodes: boolean;
}

export function createFaults(): Faults {
  return {
    appends: [],
    choose: undefined,
    leader: undefined,
    notReady: false,
    members: undefined,
    dropAfter: 0,
    endAfter: 0,
    caughtUpRepeats: false,
    silentReads: false,
    cutOffAt: undefined,
    silentFeatures: false,
    admin: undefined,
    stranger: undefined,
    featuresFail: undefined,
    silentGossip: false,
    clockAheadMs: 0,
    dates: true,
    wildCheckpoints: false,
    eventsNowhere: false,
    later: undefined,
    noNodes: false,
  };
}

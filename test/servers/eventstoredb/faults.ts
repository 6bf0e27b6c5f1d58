/** What the test server can be told to do wrong, all of it seen on real servers. Data only, so that it fits on a line. */

export type AppendFault =
  /** Neither written nor ever answered. */
  | { readonly kind: 'silent' }
  /** Written, never answered. */
  | { readonly kind: 'answer_lost' }
  /** Not written, answered with Timeout. */
  | { readonly kind: 'deadline' }
  /** Answered with Timeout, and written so much later. */
  | { readonly kind: 'commit_timeout'; readonly laterMs: number }
  | { readonly kind: 'not_ready' }
  /** The whole call is ended; nothing is written. */
  | { readonly kind: 'not_leader'; readonly host: string; readonly port: number }
  /** Written, answered without a position. */
  | { readonly kind: 'no_position' }
  /** The connection is cut, after the events were written or before. */
  | { readonly kind: 'cut'; readonly written: boolean }
  /** Written and answered so much later. */
  | { readonly kind: 'late'; readonly ms: number }
  /** Written at once, answered so much later. */
  | { readonly kind: 'answer_late'; readonly ms: number }
  /** The whole call is ended as if all were well; nothing is written and nothing answered. */
  | { readonly kind: 'end_call' }
  /** The whole call is reset without a status, after the events were written or before. */
  | { readonly kind: 'reset_call'; readonly written: boolean };

export interface Faults {
  /** For the next appends of any stream, one each, in turn. */
  appends: AppendFault[];
  /** Asked when that list is empty. */
  choose: (() => AppendFault | undefined) | undefined;
  /** This node follows: calls that require the leader are sent there. */
  leader: { readonly host: string; readonly port: number } | undefined;
  /** A subscription is dropped as too slow after so many live events; 0 for never. */
  dropAfter: number;
  /** A subscription is ended without an error after so many live events; 0 for never. */
  endAfter: number;
  /** As 24.2 does: caughtUp again after live events. */
  caughtUpRepeats: boolean;
  /** Subscriptions and reads get no answer at all. */
  silentReads: boolean;
  silentFeatures: boolean;
  /** What is answered to the question for the server's features. */
  featuresFail: { readonly code: number; readonly details: string } | undefined;
  /** Nobody is told who leads: a node that hangs. */
  silentGossip: boolean;
  /** How much later it is on this server than on the client. */
  clockAheadMs: number;
  /** Checkpoints are told at a position beyond 2^53. */
  wildCheckpoints: boolean;
  /** Gossip knows no node that lives. */
  noNodes: boolean;
}

export function createFaults(): Faults {
  return {
    appends: [],
    choose: undefined,
    leader: undefined,
    dropAfter: 0,
    endAfter: 0,
    caughtUpRepeats: false,
    silentReads: false,
    silentFeatures: false,
    featuresFail: undefined,
    silentGossip: false,
    clockAheadMs: 0,
    wildCheckpoints: false,
    noNodes: false,
  };
}

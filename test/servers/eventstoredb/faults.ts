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
  | { readonly kind: 'late'; readonly ms: number };

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
    noNodes: false,
  };
}

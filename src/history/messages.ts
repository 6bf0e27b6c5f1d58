/** The conversation of the job that compiles an earlier configuration, in the order in which it goes on. */
import type { ChainBreak } from '../domain/log-chain/links.js';
import type { NodeSnapshot } from '../domain/snapshot/snapshot.js';
import type { MacKeys } from '../security/log-chain/keys.js';
import type { StoredFleet } from '../projections/fleet/fold-checkpoint.js';

export const jobName = 'compile_earlier';

/** The first message: what is wanted. */
export interface Wanted {
  readonly nodeId: string;
  readonly generation: number;
  readonly macKeys: MacKeys;
}

export type ToJob =
  /** A checkpoint that may save reading; answered with another `from`. */
  | { readonly kind: 'checkpoint'; readonly checkpoint: StoredFleet }
  /** The events after `from`, in order, as JSON texts of a list; each is answered with `taken`. */
  | { readonly kind: 'events'; readonly text: string }
  /** There are no more. Answered with a `Result`, as is the part after which the fold needs no more. */
  | { readonly kind: 'end' };

export type FromJob =
  /** The job has this revision of `svc-fleet` and needs the events after it; -1 when it has none. */
  { readonly kind: 'from'; readonly revision: number } | { readonly kind: 'taken' } | Result;

type Result =
  /** With secrets sealed; undefined when the node had no generation so early. */
  | { readonly kind: 'compiled'; readonly snapshot: NodeSnapshot | undefined }
  /** The log was tampered with. */
  | { readonly kind: 'broken'; readonly at: ChainBreak };

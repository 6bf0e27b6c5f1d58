/** The changes of the next deploy, hop by hop: the deployed path, with the differences of the draft beside it. Pure. */
import { differencesOf, type Change } from '../shared/ui/differences.js';
import type { Definition, Hop } from './chains.js';

export interface ChangedHop {
  readonly hop: Hop;
  /** `gone` is deployed and leaves; `added` is only in the draft. */
  readonly kind: 'kept' | 'changed' | 'added' | 'gone';
  /** For a changed hop, by field; with `place` if its place among the hops that stay has changed. */
  readonly changes: readonly Change[];
}

export interface PathChanges {
  /** The deployed hops in their order; an added hop comes after the one that it follows in the draft. */
  readonly hops: readonly ChangedHop[];
  readonly payload: readonly Change[];
  readonly target: readonly Change[];
}

/** Changes beside hops need room. */
export const changesSomething = ({ hops, payload, target }: PathChanges): boolean =>
  hops.some(({ kind }) => kind !== 'kept') || payload.length + target.length > 0;

/** Hops are the same when their node is: a node is in a chain at most once. */
export function pathChanges(deployed: Definition, draft: Definition): PathChanges {
  const stay = (one: Definition, other: Definition): readonly string[] =>
    one.hops.map(({ node_id: id }) => id).filter((id) => other.hops.some((hop) => hop.node_id === id));
  const [before, after] = [stay(deployed, draft), stay(draft, deployed)];
  const hops = deployed.hops.map((hop): ChangedHop => {
    const now = draft.hops.find(({ node_id: id }) => id === hop.node_id);
    if (now === undefined) return { hop, kind: 'gone', changes: [] };
    const place = (ids: readonly string[]) => ids.indexOf(hop.node_id) + 1;
    const moved = place(before) === place(after) ? [] : [{ path: 'place', before: place(before), after: place(after) }];
    const changes = [...moved, ...differencesOf(hop, now)];
    return { hop, kind: changes.length === 0 ? 'kept' : 'changed', changes };
  });
  for (const [index, hop] of draft.hops.entries()) {
    if (before.includes(hop.node_id)) continue;
    const follows = draft.hops[index - 1]?.node_id;
    const at = hops.findIndex((one) => one.hop.node_id === follows) + 1;
    hops.splice(at, 0, { hop, kind: 'added', changes: [] });
  }
  return {
    hops,
    payload: differencesOf(deployed.payload, draft.payload, 'payload'),
    target: differencesOf(deployed.target, draft.target),
  };
}

/**
 * Decides the next step of a released wave from the rollout's state, what its nodes report and how long its clock has
 * run. Pure. `runner.ts` observes the nodes and gives the commands. Implements `docs/contract/rollouts.md#running`.
 */
import { placesIn } from '../domain/rollout/node-set.js';
import type { Judged, RolloutState } from '../domain/rollout/rollout.js';
import { nodesOfShare } from '../domain/rollout-policy/rollout-policy.js';

/** A node of the current wave, as seen now. */
export interface SeenNode {
  readonly nodeId: string;
  readonly place: number;
  readonly online: boolean;
  /** How far it is with the rollout's change. */
  readonly apply: 'applied' | 'rejected' | 'waiting';
  /** One of its listeners was never seen running since the bake began, and is not excused. */
  readonly fails: boolean;
}

export type Judgement =
  | { readonly kind: 'nothing' }
  | ({ readonly kind: 'converge' | 'release' } & Judged)
  | ({ readonly kind: 'stop'; readonly reason: string } & Judged);

/**
 * @param seen the nodes of the current wave
 * @param ranMs how long the clock of the wave has run: since the release while it converges, since it converged while
 *   it bakes
 */
export function judge(rollout: RolloutState, seen: readonly SeenNode[], ranMs: number): Judgement {
  switch (rollout.state) {
    case 'running':
      return judgeRelease(rollout, seen, ranMs);
    case 'baking':
      return judgeBake(rollout, seen, ranMs);
    default:
      return { kind: 'nothing' };
  }
}

function judgeRelease(rollout: RolloutState, seen: readonly SeenNode[], ranMs: number): Judgement {
  const isLate = ranMs >= rollout.policy.apply_timeout_secs * 1_000;
  const failed = seen.filter(({ apply, online }) => apply === 'rejected' || (apply === 'waiting' && online && isLate));
  const stopped = stopOf(rollout, failed, []);
  if (stopped !== undefined) return stopped;
  const isAwaited = seen.some(({ apply, online }) => apply === 'waiting' && online && !isLate);
  return isAwaited ? { kind: 'nothing' } : { kind: 'converge', ...judged(rollout, failed, []) };
}

function judgeBake(rollout: RolloutState, seen: readonly SeenNode[], ranMs: number): Judgement {
  const { apply_timeout_secs, bake_secs } = rollout.policy;
  const isOver = ranMs >= bake_secs * 1_000;
  const { online: wereOnline = '', ran_ms = 0 } = rollout.waves[rollout.wave - 1] ?? {};
  const wasOnline = new Set(placesIn(wereOnline));
  // A node may come back while the wave bakes, and is not waited for.
  const isLate = isOver && ran_ms + ranMs >= apply_timeout_secs * 1_000;
  const failed = seen.filter(
    ({ apply, online, fails }) =>
      apply === 'rejected' || (apply === 'waiting' && online && isLate) || (isOver && bake_secs > 0 && fails),
  );
  const lost = isOver ? seen.filter(({ online, place }) => !online && wasOnline.has(place)) : [];
  const stopped = stopOf(rollout, failed, lost);
  if (stopped !== undefined) return stopped;
  return isOver ? { kind: 'release', ...judged(rollout, failed, lost) } : { kind: 'nothing' };
}

/** Undefined while the policy allows that many. */
function stopOf(
  rollout: RolloutState,
  failed: readonly SeenNode[],
  lost: readonly SeenNode[],
): Extract<Judgement, { readonly kind: 'stop' }> | undefined {
  const { policy, nodes } = rollout;
  const over = (what: string, before: string, now: readonly SeenNode[], share: number | string): string | undefined => {
    const count = new Set([...placesIn(before), ...now.map(({ place }) => place)]).size;
    const allowed = nodesOfShare(share, nodes.length);
    if (count <= allowed) return undefined;
    return `${count} ${count === 1 ? 'node' : 'nodes'} ${what} by wave ${rollout.wave}; the policy allows ${allowed}`;
  };
  const reason =
    over('failed', rollout.failed, failed, policy.max_failed) ??
    over('did not come back', rollout.lost, lost, policy.max_lost);
  return reason === undefined ? undefined : { kind: 'stop', reason, ...judged(rollout, failed, lost) };
}

function judged(rollout: RolloutState, failed: readonly SeenNode[], lost: readonly SeenNode[]): Judged {
  const besides = (known: string, nodes: readonly SeenNode[]): readonly string[] => {
    const places = new Set(placesIn(known));
    return nodes.filter(({ place }) => !places.has(place)).map(({ nodeId }) => nodeId);
  };
  return { failed: besides(rollout.failed, failed), lost: besides(rollout.lost, lost) };
}

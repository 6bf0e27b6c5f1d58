/** Which states of a hop to show: whatever differs from "running"; and the mood of the arrow into the hop. Pure. */
import type { Mood } from '../shared/ui/state.js';
import type { Chain, DeploymentNode, Link } from './chains.js';

type HopStatus = Chain['hop_status'][number];
type Progress = DeploymentNode['state'];

/** A link that loses more makes its chain degraded. */
const tolerableLoss = 0.2;

/**
 * The states of a hop to show: its node's if that is not online, its progress with the newest deployment until it has
 * applied it, its listener's unless one of these says it already.
 */
export function shownOf(
  { status, state }: HopStatus,
  progress: Progress | undefined,
): readonly ('node' | 'progress' | 'listener')[] {
  if (status !== 'online') return state === null ? ['node'] : ['node', 'listener'];
  if (progress === undefined || progress === 'applied' || progress === 'offline') return ['listener'];
  return state === 'running' ? ['progress', 'listener'] : ['progress'];
}

/** The mood of a deployment: the worst of its nodes counts. */
export function moodOf(progress: readonly Progress[]): Mood {
  if (progress.includes('rejected')) return 'bad';
  if (progress.some((state) => state === 'pending' || state === 'pushed' || state === 'held')) return 'busy';
  return progress.includes('offline') ? 'warning' : 'good';
}

/** Whether traffic arrives: not at all, with losses, as it should, or unknown. */
export function arrowOf(hop: HopStatus | undefined, progress: Progress | undefined, link: Link | undefined): Mood {
  if (hop === undefined || !hop.deployed || hop.status === 'pending') return 'idle';
  if (hop.status === 'offline') return 'bad';
  if (hop.state === null) return progress === 'rejected' ? 'bad' : 'idle';
  if (hop.state !== 'running') return 'bad';
  if (progress === 'rejected') return 'warning';
  return (link?.loss_ratio ?? 0) > tolerableLoss ? 'warning' : 'good';
}

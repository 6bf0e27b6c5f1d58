/**
 * What people can do with a rollout, by its state, and the states of its waves. Pure. Implements
 * `docs/contract/rollouts.md#running`.
 */
import type { Schemas } from '../shared/api/client.js';
import type { states } from '../shared/ui/states.js';

type Rollout = Schemas['Rollout'];

export type Step = 'pause' | 'resume' | 'advance' | 'complete' | 'revert';

const stepsOf: Readonly<Record<Rollout['state'], readonly Step[]>> = {
  running: ['pause', 'complete', 'revert'],
  baking: ['advance', 'pause', 'complete', 'revert'],
  paused: ['resume', 'complete', 'revert'],
  halted: ['resume', 'complete', 'revert'],
  reverting: ['complete', 'revert'],
  reverted: [],
  completed: [],
  cancelled: [],
};

/** The steps that the service would accept now. An upgrade has no entry to revert. */
export const possibleSteps = ({ state, entry_id }: Pick<Rollout, 'state' | 'entry_id'>): readonly Step[] =>
  stepsOf[state].filter((step) => step !== 'revert' || entry_id !== null);

type WaveState = keyof typeof states.wave;

/** The state of the wave at an index. */
export function waveState({ state, wave, waves }: Pick<Rollout, 'state' | 'wave' | 'waves'>, index: number): WaveState {
  const released = waves[index]?.released_at ?? null;
  if (state === 'completed') return 'done';
  if (released === null || index >= wave) return 'waiting';
  if (index < wave - 1) return 'done';
  if (state === 'running') return 'applying';
  return state === 'baking' ? 'baking' : 'stopped';
}

type Counts = Rollout['waves'][number]['counts'];

export const countNames = ['applied', 'pushed', 'held', 'rejected', 'failed', 'lost', 'offline'] as const;

export const nodesIn = (counts: Counts): number => countNames.reduce((sum, name) => sum + counts[name], 0);

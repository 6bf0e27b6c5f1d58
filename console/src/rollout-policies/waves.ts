/** The waves of a policy in words. Pure. */
import type { RolloutPolicy } from './rollout-policies.js';
import { text } from './rollout-policies.text.js';

/** `canary:yes → 10% → the rest` */
export const wavesInWords = ({ waves }: Pick<RolloutPolicy, 'waves'>): string =>
  [
    ...waves.map((wave) =>
      'labels' in wave
        ? Object.entries(wave.labels)
            .map(([key, value]) => (value === '' ? key : `${key}:${value}`))
            .join(', ')
        : text.wave(wave.nodes),
    ),
    text.rest,
  ].join(text.before);

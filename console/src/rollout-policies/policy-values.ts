/** A rollout policy as its form holds it, and as the API takes it. Pure. */
import type { Schemas } from '../shared/api/client.js';
import type { RolloutPolicy } from './rollout-policies.js';

type Sent = Schemas['NewRolloutPolicy'];
type Share = Sent['waves'][number] extends infer W ? (W extends { readonly nodes: infer N } ? N : never) : never;

export interface WaveValues {
  readonly by: 'nodes' | 'labels';
  /** `3` or `10%`. */
  readonly nodes: string;
  readonly labels: Readonly<Record<string, string>>;
}

export type PolicyValues = Pick<
  RolloutPolicy,
  'name' | 'bake_secs' | 'apply_timeout_secs' | 'on_failure' | 'confirm_secs'
> & { readonly waves: readonly WaveValues[]; readonly max_failed: string; readonly max_lost: string };

export const newWave: WaveValues = { by: 'nodes', nodes: '10%', labels: {} };

export const valuesOf = (policy: RolloutPolicy | undefined): PolicyValues => ({
  name: policy?.name ?? '',
  waves: policy?.waves.map(waveValues) ?? [{ ...newWave, nodes: '1' }, newWave],
  bake_secs: policy?.bake_secs ?? 60,
  apply_timeout_secs: policy?.apply_timeout_secs ?? 120,
  max_failed: String(policy?.max_failed ?? 0),
  max_lost: String(policy?.max_lost ?? 0),
  on_failure: policy?.on_failure ?? 'halt',
  confirm_secs: policy?.confirm_secs ?? null,
});

const waveValues = (wave: RolloutPolicy['waves'][number]): WaveValues =>
  'labels' in wave ? { ...newWave, by: 'labels', labels: wave.labels } : { ...newWave, nodes: String(wave.nodes) };

/** A share as the API has it: a number, or the text as it is, which the service judges. */
const shareOf = (typed: string): Share => (/^\d+$/.test(typed.trim()) ? Number(typed) : typed.trim());

/** The body that a form sends; absent fields stay absent. */
export function sentOf({ waves, max_failed, max_lost, ...rest }: Partial<PolicyValues>): Partial<Sent> {
  return {
    ...rest,
    ...(waves && {
      waves: waves.map(({ by, nodes, labels }) => (by === 'labels' ? { labels } : { nodes: shareOf(nodes) })),
    }),
    ...(max_failed !== undefined && { max_failed: shareOf(max_failed) }),
    ...(max_lost !== undefined && { max_lost: shareOf(max_lost) }),
  };
}

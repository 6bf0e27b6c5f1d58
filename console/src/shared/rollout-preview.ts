/** The waves in which a command would reach its nodes, by a dry run. */
import { dataOf, type Answer, type Schemas } from './api/client.js';

export type RolloutPreview = Pick<Schemas['RolloutPreview'], 'waves' | 'warnings'>;

/** As the query of a command takes it: absent for what the settings say. */
export interface RolloutQuery {
  readonly rollout?: string;
}

/**
 * @param asked a command with `dry_run`, whose answer is not the one in the document.
 * @throws Refusal that the command would get
 */
export async function previewOf(asked: Promise<Answer<object>>): Promise<RolloutPreview> {
  const data = await dataOf(asked);
  if ('waves' in data && 'warnings' in data) return data as RolloutPreview;
  throw new Error('a dry run answered without waves');
}

/** How many nodes each planned wave has. */
export const waveSizes = (waves: RolloutPreview['waves']): readonly number[] =>
  waves.map(({ units }) => units.reduce((sum, unit) => sum + unit.length, 0));

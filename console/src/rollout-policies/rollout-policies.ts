/** Queries and commands of rollout policies. */
import type { Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';

export type RolloutPolicy = Schemas['RolloutPolicy'];

export const rolloutPolicies = crud('rollout_policy');

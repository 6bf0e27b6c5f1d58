/** Rollout policies. Implements `docs/contract/rollouts.md#rollout-policies`. */
import { z } from 'zod';
import { failureReactions, type RolloutPolicyDefinition } from '../../../domain/rollout-policy/rollout-policy.js';
import { limits } from '../../../kernel/limits.js';
import type { RestApp, RestDeps } from '../deps.js';
import { documented, sample } from '../schemas/documented.js';
import { integer, labels, list, name, object, oneOf } from '../schemas/fields.js';
import { idOf } from '../schemas/shared-schemas.js';
import { expected } from '../schemas/validation.js';
import { resourceRoutes } from './resource-routes.js';
import { resourceSchema, type Shape } from './resource-shape.js';

const { waves, bakeSecs, applyTimeoutSecs, confirmSecs } = limits.rollouts;
const nodesMax = 1_000_000;

/** A number of nodes from `min`, or "p%" with p from `min` to 100. */
function share(min: 0 | 1) {
  const what = `an integer from ${min} to ${nodesMax}, or "p%" with p from ${min} to 100`;
  const error = expected(what);
  const percent = z
    .string({ error })
    .max(4, { error })
    .regex(min === 0 ? /^(0|[1-9]\d?|100)%$/ : /^([1-9]\d?|100)%$/, { error });
  return z.union([integer(min, nodesMax), percent], { error });
}

const about = {
  wave: 'The nodes that a wave takes of those left',
  nodes: 'So many more nodes, or so much of all nodes touched',
  labels: 'Nodes with all of these labels, and those that change together with them',
};

const labelled = labels.refine((given) => Object.keys(given).length > 0, { error: expected('at least one label') });
const wave = z
  .union(
    [
      object({ nodes: documented(share(1), about.nodes, '10%') }).meta({
        id: 'NewWaveOfNodes',
        description: about.wave,
      }),
      object({ labels: documented(labelled, about.labels, { canary: 'yes' }) }).meta({
        id: 'NewWaveOfLabels',
        description: about.wave,
      }),
    ],
    { error: expected('{nodes: n or "p%"}, or {labels: {key: value}}') },
  )
  .meta({ id: 'NewWave', description: about.wave });

const shape: Shape<RolloutPolicyDefinition> = {
  name: {
    about: 'Name, unique among rollout policies, and not `none`',
    example: 'careful',
    request: name,
  },
  waves: {
    about: `1 to ${waves} waves, each so many more nodes, or those with labels; what none takes is the last wave`,
    example: [{ labels: { canary: 'yes' } }, { nodes: '10%' }],
    request: list(wave, 1, waves),
  },
  bake_secs: {
    about: 'Seconds that a wave is watched once its nodes have applied',
    example: 60,
    request: integer(bakeSecs.min, bakeSecs.max),
    initial: bakeSecs.default,
  },
  apply_timeout_secs: {
    about: 'Seconds after which a node that has not applied has failed',
    example: 120,
    request: integer(applyTimeoutSecs.min, applyTimeoutSecs.max),
    initial: applyTimeoutSecs.default,
  },
  max_failed: {
    about: 'How many nodes may reject or fail, over all waves; as a percentage, of all nodes touched',
    example: 0,
    request: share(0),
    initial: 0,
  },
  max_lost: {
    about: 'How many nodes may go offline and not return, over all waves',
    example: '5%',
    request: share(0),
    initial: 0,
  },
  on_failure: {
    about: 'Beyond these numbers: `halt` until somebody decides, or `revert` the change',
    example: 'halt',
    request: oneOf(failureReactions),
    initial: 'halt',
  },
  confirm_secs: {
    about: 'Seconds after which a node goes back that the service has not confirmed; null for never',
    example: null,
    request: integer(confirmSecs.min, confirmSecs.max).nullable(),
    initial: null,
  },
};

const schema = resourceSchema('RolloutPolicy', 'In which waves a change reaches its nodes', shape, {
  id: idOf('Id, a UUID', sample.rolloutPolicy),
});

/** The copy of a policy that a rollout keeps. */
export const policyCopy = schema
  .omit({ managed_by: true, created_at: true, updated_at: true, version: true })
  .meta({ id: 'RolloutPolicyCopy', description: 'A rollout policy as it was when a rollout began' });

export function rolloutPolicyRoutes(app: RestApp, deps: RestDeps): void {
  resourceRoutes(app, {
    path: '/api/rollout-policies',
    what: 'rollout policy',
    names: { one: 'RolloutPolicy', many: 'RolloutPolicies' },
    summaries: {
      list: 'List rollout policies',
      create: 'Create a rollout policy',
      get: 'Get a rollout policy',
      update: 'Change a rollout policy',
      remove: 'Delete a rollout policy that the settings do not name',
    },
    details: { update: 'Rollouts have copies of their policies, so those that have begun stay as they are.' },
    shape,
    schema,
    inFile: null,
    ...deps.fleet.resources.rollout_policy,
    ...deps.commands.resources.rollout_policy,
  });
}

/**
 * What all routes share whose commands may touch several nodes: how they take `rollout` and `dry_run`, and what they
 * add to their answers. Implements `docs/contract/rollouts.md#starting-one`.
 */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { ConfirmationAsk } from '../../../domain/confirmation/confirmation.js';
import { ServiceError } from '../../../kernel/errors.js';
import { limits } from '../../../kernel/limits.js';
import type { RolloutAsked } from '../../../commands/port.js';
import { nothingPlanned } from '../../../commands/rollouts.js';
import { answers } from '../answers/envelope.js';
import type { RestApp, RestDeps } from '../deps.js';
import type { DeclaredRoute, RouteSchema } from '../route-declaration.js';
import { component, documented, sample } from '../schemas/documented.js';
import { name } from '../schemas/fields.js';
import { noQuery, query, queryInteger } from '../schemas/query.js';
import { idOf, nodeId } from '../schemas/shared-schemas.js';
import { expected } from '../schemas/validation.js';

const confirmSecs = { node: limits.rollouts.confirmSecs, manual: limits.rollouts.confirmManualSecs };

export const dryRun = z.enum(['true', 'false'], { error: expected('true or false') }).optional();

const rolloutQuery = {
  rollout: name.optional().meta({
    description: 'The rollout policy by which it reaches its nodes, or `none`; absent: as the settings say',
    examples: ['careful'],
  }),
  confirm: z
    .enum(['node', 'manual'], { error: expected('node or manual') })
    .optional()
    .meta({
      description:
        'Who must confirm the change within `confirm_secs`, or it goes back: `node`, the service for each node that it reaches (agents with the feature `confirm`); `manual`, a person, at `/api/audit/{id}/confirm`; absent: as the rollout policy says',
    }),
  confirm_secs: queryInteger(
    confirmSecs.manual.min,
    confirmSecs.manual.max,
    `How long the confirmation may take, in seconds; with \`confirm\`: ${confirmSecs.node.min} to ${confirmSecs.node.max} of \`node\``,
  ).optional(),
  dry_run: dryRun.meta({
    description:
      'With `true`, nothing is written; the answer is a 200 with what would be (`x-dry-run` of the operation)',
  }),
};

const warnings = documented(z.array(z.string()), 'What to know about it', ['one unit of 2 nodes, no waves']);

/** The part of a rollout that a dry run shows. */
export const previewFields = {
  waves: documented(
    z.array(
      component('PlannedWave', 'The units of a wave, in their order', {
        units: documented(z.array(z.array(nodeId)), 'Nodes that change together, by unit'),
      }),
    ),
    'The waves; empty without a rollout',
  ),
  warnings,
};
/** The answer of a dry run, whatever the command itself answers. */
export const previewAnswer = answers(
  component('RolloutPreview', 'What would become of a command, with `dry_run=true`', previewFields),
)[200];

const resultFields = {
  rollout_id: documented(
    idOf('Id', sample.rollout).nullable().exactOptional(),
    'The rollout that it has started, null for none; absent unless one was asked for or the settings name a policy',
    null,
  ),
  warnings: warnings.exactOptional(),
};

const results = new WeakMap<z.ZodType, z.ZodType>();
/** Schemas that only commands answer with; they keep their names. */
const ofCommands = /^(Saved|Created|Deployed|Fleet|ListenerPolicy)/;

/**
 * The schema of an answer with what a rollout adds to it; its own fields stay.
 * @param id its name; by default it follows from that of `data`
 */
export function rolledOutSchema(data: z.ZodType, id?: string): z.ZodType {
  const known = results.get(data);
  if (known !== undefined || !(data instanceof z.ZodObject)) return known ?? data;
  const { id: own, description = 'Done' } = data.meta() ?? {};
  const named = id ?? (own === undefined || ofCommands.test(own) ? own : `Saved${own}`);
  const schema = data
    .extend({ ...resultFields, ...data.shape })
    .meta({ ...(named === undefined ? {} : { id: named }), description });
  results.set(data, schema);
  return schema;
}

const dataIn = (envelope: z.ZodType): z.ZodType =>
  envelope instanceof z.ZodObject ? (envelope.shape['data'] as z.ZodType) : envelope;

/** The schema of a route with the parameters, and with what they add to its answers. */
export function withRollout({ schema, config }: DeclaredRoute): RouteSchema {
  if (config.rollsOut === undefined) return schema;
  const { querystring = noQuery, response } = schema;
  const own = querystring instanceof z.ZodObject ? querystring.shape : {};
  const taken = { ...schema, querystring: query({ ...rolloutQuery, ...own }) };
  if (config.rollsOut === 'shown by itself') return taken;
  const added = Object.entries(response).map(([status, one]) => [status, answers(rolledOutSchema(dataIn(one)))[200]]);
  return { ...taken, response: Object.fromEntries(added) as RouteSchema['response'] };
}

interface Asked {
  readonly rollout?: string;
  readonly dry_run?: string;
  readonly confirm?: ConfirmationAsk['by'];
  readonly confirm_secs?: number;
}

/** @throws ServiceError `invalid_request` */
function confirmAsked({ confirm, confirm_secs }: Asked): ConfirmationAsk | undefined {
  if (confirm !== undefined && confirm_secs !== undefined) {
    const { min, max } = confirmSecs[confirm];
    if (confirm_secs >= min && confirm_secs <= max) return { by: confirm, secs: confirm_secs };
    throw new ServiceError('invalid_request', `confirm_secs: expected ${min} to ${max} with confirm=${confirm}`);
  }
  if (confirm === undefined && confirm_secs === undefined) return undefined;
  throw new ServiceError('invalid_request', 'confirm: expected it together with confirm_secs, got one of them');
}

/** How a request wants its command to be rolled out; undefined for routes that do not roll out. */
export function rolloutAsked(request: FastifyRequest): RolloutAsked | undefined {
  if (request.routeOptions.config.rollsOut === undefined) return undefined;
  const query = request.query as Asked;
  return {
    policy: query.rollout,
    dryRun: query.dry_run === 'true',
    confirm: confirmAsked(query),
    planned: (plan) => void (request.rolloutPlan = plan ?? null),
  };
}

/** The data of an answer plus what became of its command; for a dry run, plus the waves. */
export function withPlan<T extends object>({ fleet }: Pick<RestDeps, 'fleet'>, request: FastifyRequest, data: T) {
  const { rollout, dry_run } = request.query as Asked;
  const isInForce = rollout !== undefined || fleet.settings().rollout_policy !== null;
  const plan = request.rolloutPlan ?? (isInForce || dry_run === 'true' ? nothingPlanned : undefined);
  if (plan === undefined) return data;
  const told: readonly string[] = 'warnings' in data && Array.isArray(data.warnings) ? data.warnings : [];
  return {
    ...data,
    ...(dry_run === 'true' ? { waves: plan.waves } : { rollout_id: plan.rolloutId }),
    warnings: [...told, ...plan.warnings],
  };
}

/** Completes the answers of commands that may be rolled out. */
export function installRollouts(app: RestApp, deps: Pick<RestDeps, 'fleet'>): void {
  app.decorateRequest('rolloutPlan', null);
  app.addHook('preSerialization', async (request, reply, payload) => {
    if (request.routeOptions.config.rollsOut === undefined || reply.statusCode >= 300) return payload;
    const { data, ...rest } = payload as { readonly data: object };
    // A dry run of most routes is the plan itself.
    return 'waves' in data ? payload : { ...rest, data: withPlan(deps, request, data) };
  });
}

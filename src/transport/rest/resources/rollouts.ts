/** Rollouts: the list, one with its nodes, and the steps that people take. Implements `docs/contract/rollouts.md#running`. */
import { z } from 'zod';
import { rolloutVerbs } from '../../../commands/handlers-port.js';
import { placesIn } from '../../../domain/rollout/node-set.js';
import { nodesIn, rolloutStates, type RolloutState } from '../../../domain/rollout/rollout.js';
import { timestamp } from '../../../kernel/clock.js';
import { withPauses } from '../../../kernel/pieces.js';
import { progressOf, rolloutNodeStates, waveCounts } from '../../../reports/rollouts.js';
import { answers, ok, pageOf, type Shown } from '../answers/envelope.js';
import { commandContext, setCommandHeaders } from '../checks/consistency.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import type { RestApp, RestDeps } from '../deps.js';
import { policyCopy } from './rollout-policies.js';
import { component, documented, sample } from '../schemas/documented.js';
import { oneOf, uuid } from '../schemas/fields.js';
import { etag } from '../schemas/headers.js';
import { after, newestAnswer, newestFirst, pageOfQuery, paging, query, queryInteger } from '../schemas/query.js';
import { idOf, nodeId, time, timeOf, timestamps } from '../schemas/shared-schemas.js';

const what = 'rollout';
const nullableText = z.string().nullable();
const number = (about: string, example: number) => documented(z.int(), about, example);

const counts = component('RolloutWaveCounts', 'The nodes of a wave, by state', {
  held: number('Nodes that wait for their wave', 3),
  pushed: number('Nodes that have not answered yet', 0),
  applied: number('Nodes that have applied it', 2),
  rejected: number('Nodes that have rejected it', 0),
  failed: number('Nodes that did not apply it in time, or a listener of which does not run', 0),
  lost: number('Nodes that have gone offline and not returned', 0),
  offline: number('Nodes that are offline', 0),
});

const rolloutFields = {
  id: idOf('Id of the rollout', sample.rollout),
  entry_id: documented(
    z.string().meta({ format: 'uuid' }).nullable(),
    'The audit entry of the change; null of an upgrade',
    sample.entry,
  ),
  action: documented(z.string(), 'What was done', 'l4_chain.deploy'),
  resource: component('RolloutResource', 'What the change was about', {
    type: documented(z.string(), 'Type of the resource', 'l4_chain'),
    id: documented(nullableText, 'Its id', sample.chain),
    name: documented(nullableText, 'Its name at that time', 'front'),
  }),
  policy: documented(policyCopy, 'The policy as it was then'),
  state: documented(z.enum(rolloutStates), 'Where it stands', 'baking'),
  wave: number('The current wave, from 1', 1),
  waves: documented(
    z.array(
      component('RolloutWave', 'A wave of a rollout', {
        released_at: documented(time.nullable(), 'When its nodes got the change; null before', sample.time),
        converged_at: documented(time.nullable(), 'When its nodes had applied or failed; null before', sample.later),
        counts,
      }),
    ),
    'The waves in order',
  ),
  failed: number('Nodes that have rejected or failed, over all waves, as judged so far', 0),
  lost: number('Nodes that were lost, over all waves', 0),
  reason: documented(nullableText, 'Why it was halted or is reverted; else null', null),
  due_at: documented(
    time.nullable(),
    'When the timeout of the current wave ends, or its bake while it is `baking`; null while neither runs',
    sample.later,
  ),
  started_at: timeOf('When it was started'),
  ended_at: documented(time.nullable(), 'When it ended; null before', null),
  ...timestamps,
};

const rolloutSchema = component('Rollout', 'A change on its way to its nodes, wave by wave', rolloutFields);

const withNodes = component('RolloutWithNodes', 'A rollout with a page of its nodes', {
  ...rolloutFields,
  nodes: documented(
    z.array(
      component('RolloutNode', 'A node of a rollout', {
        node_id: nodeId,
        node_name: documented(z.string(), 'Its name', 'edge-1'),
        wave: number('Its wave, from 1', 1),
        unit: number('Its unit, from 1 over all waves: nodes of one change together', 1),
        generation: number('The generation from which on it has the change', 42),
        state: documented(z.enum(rolloutNodeStates), 'How far it is', 'applied'),
      }),
    ),
    'The nodes of this page',
  ),
  nodes_total: number('Number of nodes on all pages', 5),
  page: number('Number of this page', 1),
  page_size: number('How many nodes a page has at most', 50),
});

/** Null while the clock stands, as in a paused rollout. */
function dueAt({ state, policy, clock: { ran_ms, since } }: RolloutState): string | null {
  if (since === null || (state !== 'running' && state !== 'baking')) return null;
  const seconds = state === 'baking' ? policy.bake_secs : policy.apply_timeout_secs;
  return timestamp(Date.parse(since) - ran_ms + seconds * 1_000);
}

/** The schema leaves out other fields of the state. */
async function view(deps: RestDeps, rollout: RolloutState): Promise<Shown<typeof rolloutSchema>> {
  const counted = await withPauses(waveCounts(deps, rollout));
  return {
    ...rollout,
    waves: rollout.waves.flatMap(({ released_at, converged_at }, index) => {
      const ofWave = counted[index];
      return ofWave === undefined ? [] : [{ released_at, converged_at, counts: ofWave }];
    }),
    failed: placesIn(rollout.failed).length,
    lost: placesIn(rollout.lost).length,
    due_at: dueAt(rollout),
    started_at: rollout.created_at,
  };
}

export function rolloutRoutes(app: RestApp, deps: RestDeps): void {
  const stored = (id: string): RolloutState => orNotFound(deps.fleet.rollout(id), what);

  app.get('/api/rollouts', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listRollouts',
      summary: 'List rollouts, newest first',
      description: 'Those that have ended are forgotten when there are many newer ones; the audit keeps their entries.',
      querystring: query({
        ...paging,
        after,
        state: oneOf(rolloutStates).optional().meta({ description: 'Only rollouts in this state' }),
        node_id: uuid.optional().meta({ description: 'Only rollouts with this node' }),
      }),
      response: answers(pageOf(rolloutSchema)),
    },
    handler: async (request) => {
      const { state, node_id } = request.query;
      const { page, pageSize, behind } = newestFirst(request.query);
      const found = [...deps.fleet.rollouts()]
        .filter((one) => state === undefined || one.state === state)
        .filter((one) => node_id === undefined || [...nodesIn(one)].some(({ nodeId: id }) => id === node_id))
        .sort((a, b) => b.revision - a.revision);
      const rest =
        behind === undefined || behind === 'start' ? found : found.filter((one) => one.revision < Number(behind));
      const from = behind === undefined ? (page - 1) * pageSize : 0;
      const shown = rest.slice(from, from + pageSize);
      const items: Awaited<ReturnType<typeof view>>[] = [];
      for (const one of shown) items.push(await view(deps, one));
      const last = rest.length > shown.length ? shown.at(-1) : undefined;
      const next = behind === undefined ? {} : { next: last === undefined ? null : String(last.revision) };
      return ok(newestAnswer(request.query, { items, total: found.length, ...next }));
    },
  });

  app.get('/api/rollouts/:id', {
    config: { access: 'anyone', takes: 'none', sendsEtag: true },
    schema: {
      operationId: 'getRollout',
      summary: 'Get a rollout, with a page of its nodes',
      description: 'Nodes come in the order of their waves and units. A wave beyond the last has none.',
      querystring: query({
        ...paging,
        wave: queryInteger(1, Number.MAX_SAFE_INTEGER, 'Only the nodes of this wave').optional(),
      }),
      response: answers(withNodes),
    },
    handler: async (request, reply) => {
      const rollout = stored(pathId(request.params, what));
      void reply.header('etag', etag(rollout.version));
      const { page, pageSize } = pageOfQuery(request.query);
      const { wave } = request.query;
      const all = [...nodesIn(rollout)].filter((node) => wave === undefined || node.wave === wave);
      const progress = progressOf(deps, rollout);
      const nodes = all.slice((page - 1) * pageSize, page * pageSize).map((node) => ({
        node_id: node.nodeId,
        node_name: deps.fleet.node(node.nodeId)?.name ?? node.nodeId,
        wave: node.wave,
        unit: node.unit,
        ...progress(node),
      }));
      return ok({ ...(await view(deps, rollout)), nodes, nodes_total: all.length, page, page_size: pageSize });
    },
  });
  stepRoutes(app, deps, stored);
}

/** The steps that people take. */
function stepRoutes(app: RestApp, deps: RestDeps, stored: (id: string) => RolloutState): void {
  for (const [verb, summary, description] of [
    [
      'pause',
      'Pause a rollout',
      'Of a running or baking one. Nothing is judged, and no time runs, until it is resumed.',
    ],
    [
      'resume',
      'Go on with a paused or halted rollout',
      'Of a paused one clocks go on where they stood; of a halted one failures are forgotten, and the timeout begins again.',
    ],
    ['advance', 'End the bake of the current wave now', 'Of a baking one: the next wave is released at once.'],
    ['complete', 'Release all waves at once', 'Of one that has not ended: every node gets the change now.'],
    ['revert', 'Revert the change of a rollout', 'Of one that has not ended: its entry is reverted, and no node held.'],
  ] as const) {
    app.post(`/api/rollouts/:id/${verb}`, {
      config: { access: 'operator', takes: 'none' },
      schema: {
        operationId: `${verb}Rollout`,
        summary,
        description: `${description} A rollout in another state is a 409.`,
        response: answers(rolloutSchema),
      },
      handler: async (request, reply) => {
        const id = pathId(request.params, what);
        const { rollouts } = deps.commands;
        const context = commandContext(request);
        const step = rolloutVerbs.find((one) => one === verb);
        setCommandHeaders(
          reply,
          await (step === undefined ? rollouts.revert(context, id) : rollouts.step(context, id, step)),
        );
        return ok(await view(deps, stored(id)));
      },
    });
  }
}

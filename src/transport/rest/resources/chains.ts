/**
 * The routes of L4 chains, except deploys (`deployments.ts`). Their fields are in `chain-schema.ts`. Implements
 * `docs/contract/rest.md#l4-chains`.
 */
import { z } from 'zod';
import {
  chainStatuses,
  credentialsOf,
  definitionsOf,
  nodesOf,
  upstreamOf,
  type ChainDefinition,
  type ChainState,
  type Hop,
} from '../../../domain/chain/chain.js';
import { healthStates } from '../../../domain/chain/health.js';
import { chainStatus } from '../../../domain/chain/status.js';
import { yieldToEventLoop } from '../../../kernel/background.js';
import { warningsOf } from '../../../reports/status.js';
import { nameKey } from '../../../domain/resource/meta.js';
import { formatHostPort } from '../../../kernel/host-port.js';
import type { ListOf, ListQuery } from '../../../kernel/list.js';
import { chainInFile, chainShape, checkDefinition } from './chain-schema.js';
import { chainSchema, chainView } from './chain-view.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok } from '../answers/envelope.js';
import { oneOf, uuid } from '../schemas/fields.js';
import { etag } from '../schemas/headers.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import { resourceRoutes } from './resource-routes.js';
import { warning, warningsSchema } from './warnings.js';
import { component, documented, sample } from '../schemas/documented.js';
import { nodeId } from '../schemas/shared-schemas.js';
import { tuning } from '../tuning.js';

const planSchema = component('L4ChainPlan', 'What a deploy would change', {
  nodes: documented(
    z.array(
      component('PlannedNode', 'What a deploy would change on a node', {
        node_id: nodeId,
        added: documented(z.array(z.string()), 'Ids of new rules', [`${sample.chain}/0`]),
        changed: documented(z.array(z.string()), 'Ids of rules that differ', []),
        removed: documented(z.array(z.string()), 'Ids of removed rules', []),
      }),
    ),
    'Nodes that change',
  ),
  collisions: documented(
    z.array(z.string()),
    'Why a deploy would be refused: one sentence for each collision, and one for a hop that cannot be dialled',
    [],
  ),
  warnings: warningsSchema,
});

const filters = {
  node_id: uuid.optional().meta({ description: 'Only chains with a hop on this node' }),
  upstream_id: documented(uuid.optional(), 'Only chains that end in this upstream', sample.upstream),
  credential_id: documented(uuid.optional(), 'Only chains with a hop that has this credential', sample.keyPair),
  status: oneOf(chainStatuses).optional().meta({ description: 'Only chains with this status' }),
  health: oneOf(healthStates)
    .optional()
    .meta({ description: 'Only chains of this health; in a large fleet, from reports up to 15 seconds old' }),
};
type Filters = z.output<z.ZodObject<typeof filters>>;
type Used = Pick<Filters, 'node_id' | 'upstream_id' | 'credential_id'>;

/** Whether one definition uses everything that the filter names. */
function uses(definition: ChainDefinition, { node_id, upstream_id, credential_id }: Used): boolean {
  return (
    (node_id === undefined || nodesOf(definition).includes(node_id)) &&
    (upstream_id === undefined || upstreamOf(definition) === upstream_id) &&
    (credential_id === undefined || credentialsOf(definition).includes(credential_id))
  );
}

/** Whether its name, or a hop's node name, address or port, contains the text that `q` searches for. */
function mentions({ fleet }: RestDeps, chain: ChainState, searched: string): boolean {
  const isIn = ({ node_id, listen_addr: host, listen_port: port }: Hop): boolean =>
    formatHostPort({ host, port }).includes(searched) || nameKey(fleet.node(node_id)?.name ?? '').includes(searched);
  return nameKey(chain.name).includes(searched) || definitionsOf(chain).some(({ hops }) => hops.some(isIn));
}

export function chainRoutes(app: RestApp, deps: RestDeps): void {
  const queries = deps.fleet.resources.l4_chain;

  /** A chain's status follows from its definitions, its health from all reports. In slices, because `q` looks at every hop. */
  async function filtered(
    { q, ...paged }: ListQuery,
    { status, health, ...used }: Filters,
  ): Promise<ListOf<ChainState>> {
    if (health !== undefined) await deps.counts.now();
    const searched = q === undefined ? undefined : nameKey(q);
    /** By id: a chain may change while the others are looked at. */
    const matching = new Set<string>();
    let looked = 0;
    for (const chain of deps.fleet.chains()) {
      looked += 1;
      if (looked % tuning.chainsPerTurn === 0) await yieldToEventLoop();
      if (!definitionsOf(chain).some((definition) => uses(definition, used))) continue;
      if (status !== undefined && chainStatus(chain) !== status) continue;
      if (health !== undefined && (deps.counts.chainHealth(chain.id) ?? 'unknown') !== health) continue;
      if (searched === undefined || mentions(deps, chain, searched)) matching.add(chain.id);
    }
    return queries.list({ ...paged, matches: ({ id }) => matching.has(id) });
  }

  resourceRoutes(app, {
    path: '/api/l4-chains',
    what: 'L4 chain',
    rollsOut: true,
    names: { one: 'L4Chain', many: 'L4Chains' },
    summaries: {
      list: 'List L4 chains',
      create: 'Create an L4 chain; it runs after its first deploy',
      get: 'Get an L4 chain',
      update: 'Change an L4 chain; the deployed definition stays until the next deploy',
      remove: 'Delete an L4 chain, and stop it where it is deployed',
    },
    details: {
      list: 'Filters by node, upstream and credential, and `q`, look at the current and the deployed definition of each chain. `q` also finds the names of nodes of its hops, their addresses and ports, such as `:443`.',
      update: '`enabled` and `name` take effect at once.',
    },
    shape: chainShape,
    check: checkDefinition,
    ...warning(deps, 'l4_chain', 'L4Chain', chainSchema),
    inFile: { fieldsOf: chainInFile },
    filters,
    async list(paged, checked) {
      const wanted = checked as Filters;
      const isFiltered = paged.q !== undefined || Object.keys(filters).some((name) => checked[name] !== undefined);
      return isFiltered ? filtered(paged, wanted) : queries.list(paged);
    },
    get: queries.get,
    ...deps.commands.resources.l4_chain,
    views: (chains) => chains.map((chain) => chainView(deps, chain)),
  });

  app.get('/api/l4-chains/:id/plan', {
    config: { access: 'anyone', takes: 'none', sendsEtag: true },
    schema: {
      operationId: 'planL4Chain',
      summary: 'Get what a deploy would change; writes nothing',
      description:
        'The rules that a deploy would add, change and remove on each node that changes, and why it would be refused. The `ETag` is the version of the chain: with it as `If-Match`, a deploy does exactly this or is a 412.',
      response: answers(planSchema),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'L4 chain');
      // Plan and version come from the same fold in one turn of the event loop.
      const { version } = orNotFound(deps.fleet.chain(id), 'L4 chain');
      const plan = orNotFound(deps.fleet.plan(id), 'L4 chain');
      void reply.header('etag', etag(version));
      return ok({ ...plan, warnings: warningsOf(deps, deps.fleet.needs('l4_chain', id, 'current')) });
    },
  });
}

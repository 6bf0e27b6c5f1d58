/**
 * Deploys a chain, waits until its nodes have applied it, and lists its deployments. Implements
 * `docs/contract/rest.md#l4-chains`.
 */
import { z } from 'zod';
import { createWaiters } from '../../../kernel/waiters.js';
import type { ChainState } from '../../../domain/chain/chain.js';
import { deploymentsOf, type Deployment } from '../../../domain/fleet-file/applied.js';
import type { DeployResult } from '../../../commands/handlers-port.js';
import type { RecordedCommand } from '../../../kernel/event.js';
import { withFirstOf } from '../../../kernel/background.js';
import { limits } from '../../../kernel/limits.js';
import { deploymentNodeStates, deploymentState, type DeploymentNodeState } from '../../../reports/apply-state.js';
import { definitionSchema } from './chain-schema.js';
import { chainSchema, chainView, listenersOn } from './chain-view.js';
import { callerOf, commandBefore, commandContext, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok, type Shown } from '../answers/envelope.js';
import { oneOf } from '../schemas/fields.js';
import { deployHeaders } from '../schemas/headers.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import { listenersShown, shownListeners } from '../fleet/listener-states.js';
import { pushFacts } from './node-view.js';
import { query, queryBoolean, queryInteger } from '../schemas/query.js';
import { heldBy } from '../../../reports/rollouts.js';
import { warningsOf } from '../../../reports/status.js';
import { warningsSchema } from './warnings.js';
import { component, documented, sample } from '../schemas/documented.js';
import { applyErrors, idOf, nodeId, timeOf } from '../schemas/shared-schemas.js';

const fields = {
  id: idOf('Id of the deployment', sample.deployment),
  chain_id: idOf('Id of the chain', sample.chain),
  chain_version: documented(z.int(), 'Version of the chain that was deployed', 2),
  at: timeOf('When', sample.later),
  nodes: documented(
    z.array(
      component('DeploymentNode', 'How far a node is with a deployment', {
        node_id: nodeId,
        generation: documented(z.int(), 'The generation with the deployment', 42),
        state: documented(z.enum(deploymentNodeStates), 'How far the node is with it', 'applied'),
        errors: applyErrors,
        listeners: documented(
          shownListeners,
          'Listeners of the deployed chain on this node, with the last report of the agent; null without a report since the last apply',
        ),
      }),
    ),
    'The nodes of the old and of the new definition',
  ),
};

export const deploymentSchema = component('Deployment', 'A deployment, with the current states of its nodes', fields);

const deployedSchema = component('DeployedL4Chain', 'The chain and its deployment', {
  chain: documented(chainSchema, 'The chain'),
  warnings: warningsSchema,
  deployment: documented(deploymentSchema, 'The deployment'),
});

const listedDeployment = component('ListedDeployment', 'A deployment in a list', {
  ...fields,
  definition: documented(definitionSchema.optional(), 'The deployed definition, with `definition=true`'),
});

const deploymentsSchema = z
  .object({ items: documented(z.array(listedDeployment), 'Newest first') })
  .meta({ description: 'The deployments' });

const deployQuery = query({
  wait: oneOf(['applied'])
    .optional()
    .meta({ description: 'Answer when every connected node has applied or rejected; a 429 if too many requests wait' }),
  timeout_ms: queryInteger(0, limits.rest.deployWaitMaxMs, 'How long to wait at most; ignored without `wait`')
    .optional()
    .meta({ default: limits.rest.deployWaitDefaultMs }),
});

export function deploymentRoutes(app: RestApp, deps: RestDeps): void {
  const stopping = new AbortController();
  // A waiting deploy must not delay the shutdown: it is answered with the current states.
  app.addHook('preClose', async () => stopping.abort());

  app.post('/api/l4-chains/:id/deploy', {
    config: { access: 'operator', takes: 'none', refuses: ['rate_limited'], rollsOut: 'as planned' },
    schema: {
      operationId: 'deployL4Chain',
      summary: 'Deploy the current definition and push it',
      description:
        'The nodes of the old and the new definition get new snapshots. With `wait=applied`, the answer comes when every connected node has applied or rejected, or at the timeout; it is always a 200 with the states of the nodes.',
      querystring: deployQuery,
      headers: deployHeaders,
      response: answers(deployedSchema),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'L4 chain');
      // Without a place to wait in, nothing is deployed.
      const leave = request.query.wait === undefined ? undefined : deps.waitingDeploys.take(callerOf(request).userId);
      try {
        const outcome = await deps.commands.chains.deploy(commandContext(request), id, request.headers['if-match']);
        setCommandHeaders(reply, outcome);
        const { chain, deployment } =
          outcome.kind === 'done'
            ? { chain: outcome.result.chain, deployment: newDeployment(outcome.commandId, outcome.result) }
            : repeatedDeploy(deps, outcome.resourceId, commandBefore(outcome));
        if (leave !== undefined) {
          const disconnected = new AbortController();
          reply.raw.once('close', () => disconnected.abort());
          const ms = request.query.timeout_ms ?? limits.rest.deployWaitDefaultMs;
          await withFirstOf([stopping.signal, disconnected.signal], (signal) =>
            waitApplied(deps, deployment, ms, signal),
          );
        }
        const [view] = viewsOf(deps, [deployment]);
        const warnings = warningsOf(deps, deps.fleet.needs('l4_chain', id, 'deployed'));
        return ok({
          chain: chainView(deps, chain),
          warnings,
          deployment: orNotFound(view, 'deployment'),
        });
      } finally {
        leave?.();
      }
    },
  });

  app.get('/api/l4-chains/:id/deployments', {
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: {
      operationId: 'listL4ChainDeployments',
      summary: 'List the deployments of a chain, newest first',
      description: 'All deployments with the current states of their nodes, not paged.',
      querystring: query({ definition: queryBoolean('Whether to include the deployed definitions').optional() }),
      response: answers(deploymentsSchema),
    },
    handler: async (request) => {
      const id = pathId(request.params, 'L4 chain');
      orNotFound(deps.fleet.resources.l4_chain.get(id), 'L4 chain');
      const stored = await deps.projections.deployments.ofChain(id);
      const views = viewsOf(deps, stored);
      if (request.query.definition !== true) return ok({ items: views });
      return ok({ items: views.map((view, index) => ({ ...view, definition: stored[index]?.definition })) });
    },
  });
}

function newDeployment(commandId: string, { chain, nodes }: DeployResult): Deployment {
  return {
    id: chain.deployed?.deployment_id ?? commandId,
    chain_id: chain.id,
    chain_version: chain.deployed?.chain_version ?? chain.version,
    at: chain.deployed?.at ?? chain.updated_at,
    nodes,
  };
}

function repeatedDeploy(
  deps: RestDeps,
  chainId: string,
  command: RecordedCommand,
): { readonly chain: ChainState; readonly deployment: Deployment } {
  const chain = orNotFound(deps.fleet.resources.l4_chain.get(chainId), 'L4 chain');
  return { chain, deployment: orNotFound(deploymentsOf(command)[0], 'deployment') };
}

/** Deployments with the current states of their nodes. */
export function viewsOf(deps: RestDeps, deployments: readonly Deployment[]): Shown<typeof deploymentSchema>[] {
  return deployments.map((deployment) => {
    const chain = deps.fleet.chain(deployment.chain_id);
    const nodes = deployment.nodes.map((node) => {
      const { node_id: nodeId } = node;
      const keys = chain === undefined ? [] : listenersOn(chain, nodeId);
      return { ...node, ...stateOf(deps, node), listeners: listenersShown(deps, [{ nodeId, keys }]) };
    });
    const { id, chain_id, chain_version, at } = deployment;
    return { id, chain_id, chain_version, at, nodes };
  });
}

/** How far a node of a deployment is now. */
function stateOf(
  deps: RestDeps,
  { node_id, generation }: Pick<Deployment['nodes'][number], 'node_id' | 'generation'>,
): DeploymentNodeState {
  const presence = deps.reports.presence(node_id);
  const push = pushFacts(deps, node_id, presence);
  const state = deploymentState(generation, deps.agentFacts.of(node_id), push, presence !== undefined);
  const isDecided = state.state === 'applied' || state.state === 'rejected';
  return isDecided || heldBy(deps, node_id) === null ? state : { state: 'held', errors: [] };
}

/** Resolves once every connected node has applied or rejected the deployment, after `ms`, or at the signal. */
async function waitApplied(deps: RestDeps, deployment: Deployment, ms: number, signal: AbortSignal): Promise<void> {
  const ids = new Set(deployment.nodes.map((node) => node.node_id));
  const isDecided = (): boolean =>
    deployment.nodes
      .map((node) => stateOf(deps, node).state)
      .every((state) => state !== 'pending' && state !== 'pushed');
  const waiters = createWaiters();
  const look = (nodeId: string): void => {
    if (ids.has(nodeId)) waiters.look();
  };
  const stops = [deps.agentFacts.onFact(({ fact }) => look(fact.data.node_id)), deps.reports.onReport(look)];
  signal.addEventListener('abort', waiters.close);
  try {
    if (!signal.aborted) await waiters.until(isDecided, ms);
  } finally {
    for (const stop of stops) stop();
    signal.removeEventListener('abort', waiters.close);
  }
}

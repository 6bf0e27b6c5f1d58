/**
 * Deploying a chain, waiting until its nodes have applied, and its deployments. The states of nodes follow
 * `apply-state.ts`. Implements `docs/contract/rest.md#l4-chains` (deploy, deployments).
 */
import { z } from 'zod';
import type { DeployResult } from '../../commands/handlers-port.js';
import { limits } from '../../kernel/limits.js';
import type { Deployment } from '../../projections/port.js';
import { applyErrors, time } from './shared-schemas.js';
import { deploymentState } from './apply-state.js';
import type { ChainView } from './chain-schema.js';
import { chainView, shownChain } from './chain-schema.js';
import { commandContext, found, settle } from './consistency.js';
import type { RestApp, RestDeps } from './deps.js';
import { answers, ok } from './envelope.js';
import { deployHeaders, readHeaders } from './headers.js';
import { idParams, pathId } from './ids.js';
import { oneOf } from './fields.js';
import { pushFacts } from './node-view.js';
import { noQuery, query, queryInteger } from './query.js';
import { tuning } from './tuning.js';

const deployment = z
  .object({
    id: z.string(),
    chain_id: z.string(),
    chain_version: z.int(),
    at: time,
    nodes: z.array(
      z.object({
        node_id: z.string(),
        generation: z.int(),
        state: z.enum(['pending', 'pushed', 'applied', 'rejected', 'offline']),
        errors: applyErrors,
      }),
    ),
  })
  .meta({ id: 'Deployment' });
type DeploymentView = z.output<typeof deployment>;

const deployQuery = query({
  wait: oneOf(['applied']).optional(),
  timeout_ms: queryInteger(0, limits.rest.deployWaitMaxMs)
    .optional()
    .meta({ default: limits.rest.deployWaitDefaultMs }),
});

const tags = ['l4-chains'];

export function deploymentRoutes(app: RestApp, deps: RestDeps): void {
  const stopping = new AbortController();
  // A wait must not hold the shutdown back: it answers with the states as they are.
  app.addHook('preClose', async () => stopping.abort());

  app.route({
    method: 'POST',
    url: '/api/l4-chains/:id/deploy',
    config: { access: 'operator', takes: 'none' },
    schema: {
      summary: 'Make the definition the deployed one and push it',
      tags,
      params: idParams,
      querystring: deployQuery,
      headers: deployHeaders,
      response: answers(z.object({ chain: shownChain as unknown as z.ZodType<ChainView>, deployment })),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'L4 chain');
      const outcome = await deps.commands.chains.deploy(commandContext(request), id, request.headers['if-match']);
      settle(reply, outcome);
      const { chain, facts } =
        outcome.kind === 'done'
          ? { chain: chainView(outcome.result.chain), facts: newDeployment(outcome.commandId, outcome.result) }
          : await repeatedDeploy(deps, outcome.resourceId, outcome.commandId);
      if (request.query.wait === undefined) return ok({ chain, deployment: await view(deps, facts) });
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const ms = request.query.timeout_ms ?? limits.rest.deployWaitDefaultMs;
      const settled = await waitApplied(deps, facts, ms, AbortSignal.any([stopping.signal, gone.signal]));
      return ok({ chain, deployment: settled });
    },
  });

  app.route({
    method: 'GET',
    url: '/api/l4-chains/:id/deployments',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      summary: "The chain's deployments, newest first",
      tags,
      params: idParams,
      querystring: noQuery,
      headers: readHeaders,
      response: answers(z.object({ items: z.array(deployment) })),
    },
    handler: async (request) => {
      const id = pathId(request.params, 'L4 chain');
      found(await deps.projections.resources.l4_chain.get(id), 'L4 chain');
      return ok({ items: await views(deps, await deps.projections.deployments.ofChain(id)) });
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

async function repeatedDeploy(
  deps: RestDeps,
  chainId: string,
  commandId: string,
): Promise<{ readonly chain: ChainView; readonly facts: Deployment }> {
  const chain = chainView(found(await deps.projections.resources.l4_chain.get(chainId), 'L4 chain'));
  return { chain, facts: found(await deps.projections.deployments.get(commandId), 'deployment') };
}

async function view(deps: RestDeps, facts: Deployment): Promise<DeploymentView> {
  const [only] = await views(deps, [facts]);
  return found(only, 'deployment');
}

/** Deployments with the states of their nodes as they are now; one look at the read models for all of them. */
async function views(deps: RestDeps, deployments: readonly Deployment[]): Promise<DeploymentView[]> {
  const ids = [...new Set(deployments.flatMap((one) => one.nodes.map((node) => node.node_id)))];
  const [records, presences] = await Promise.all([
    deps.projections.nodes.getMany(ids),
    Promise.all(ids.map(async (id) => [id, await deps.telemetry.presence(id)] as const)),
  ]);
  const facts = new Map(records.map((record) => [record.node.id, record.agent]));
  const presence = new Map(presences);
  return deployments.map((one) => ({
    id: one.id,
    chain_id: one.chain_id,
    chain_version: one.chain_version,
    at: one.at,
    nodes: one.nodes.map(({ node_id, generation }) => {
      const live = presence.get(node_id);
      const { state, errors } = deploymentState(
        generation,
        facts.get(node_id),
        pushFacts(deps, node_id, live),
        live !== undefined,
      );
      return { node_id, generation, state, errors: [...errors] };
    }),
  }));
}

/** The deployment once every connected node has applied or rejected, or as it is after `ms` or at the signal. */
async function waitApplied(
  deps: RestDeps,
  facts: Deployment,
  ms: number,
  signal: AbortSignal,
): Promise<DeploymentView> {
  const ids = new Set(facts.nodes.map((node) => node.node_id));
  const deadline = deps.clock.monotonic() + ms;
  const bell = createBell();
  const stop = deps.projections.onAgentFact((fact) => {
    if (ids.has(fact.data.node_id)) bell.ring();
  });
  signal.addEventListener('abort', bell.ring);
  try {
    for (;;) {
      const now = await view(deps, facts);
      const left = deadline - deps.clock.monotonic();
      const waiting = now.nodes.some((node) => node.state === 'pending' || node.state === 'pushed');
      if (!waiting || left <= 0 || signal.aborted) return now;
      // A session that ends is no fact of a projection, so presence is looked at now and then.
      await bell.wait(Math.min(left, tuning.waitPollMs));
    }
  } finally {
    stop();
    signal.removeEventListener('abort', bell.ring);
  }
}

/** A wake-up that is not lost when it comes while nobody waits. */
function createBell(): { ring(): void; wait(ms: number): Promise<void> } {
  let rung = false;
  let wake: (() => void) | undefined;
  return {
    ring() {
      rung = true;
      wake?.();
    },
    async wait(ms) {
      if (!rung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      rung = false;
      wake = undefined;
    },
  };
}

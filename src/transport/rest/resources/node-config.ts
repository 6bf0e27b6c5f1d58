/** A node's snapshot: refresh it, read it, or read an earlier one. Implements `docs/contract/rest.md#nodes`. */
import { z } from 'zod';
import { sleep } from '../../../kernel/background.js';
import type { SnapshotJson } from '../../../delivery/port.js';
import { ServiceError } from '../../../kernel/errors.js';
import { commandContext, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok } from '../answers/envelope.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import { pushFacts } from './node-view.js';
import { query, queryInteger } from '../schemas/query.js';
import { component, documented, sample } from '../schemas/documented.js';
import { nodeId } from '../schemas/shared-schemas.js';
import { tuning } from '../tuning.js';

const generationOf = documented(z.int(), 'Number of the snapshot, growing for each node', 42);

const snapshotSchema = component('NodeSnapshot', 'The configuration that the agent should run', {
  node_id: nodeId,
  generation: generationOf,
  checksum: documented(z.string(), 'SHA-256 in lower-case hex', sample.fingerprint),
  snapshot: documented(z.record(z.string(), z.unknown()), 'proto3 JSON with the names of the proto, secrets `***`', {
    generation: '42',
    node_config: { multiplex: false, multiplex_port: 0 },
  }),
});

const refreshedSchema = component('RefreshedNode', 'The new generation', {
  node_id: nodeId,
  generation: generationOf,
  pushed: documented(z.boolean(), 'Whether it was sent to a connected agent', true),
});

export function nodeConfigRoutes(app: RestApp, deps: RestDeps): void {
  app.post('/api/nodes/:id/config', {
    config: { access: 'operator', takes: 'none' },
    schema: {
      operationId: 'refreshNodeConfig',
      summary: 'Give the node a new generation and push it',
      description:
        'Compiles the node again under a new generation. `pushed` is true if the snapshot was sent to a connected agent. The body has no rules: they follow from chains, routes, networks and settings.',
      response: answers(refreshedSchema),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'node');
      const outcome = await deps.commands.nodes.refresh(commandContext(request), id);
      setCommandHeaders(reply, outcome);
      const generation =
        outcome.kind === 'done'
          ? outcome.result.generation
          : orNotFound(deps.fleet.generation(outcome.resourceId), 'node');
      return ok({ node_id: id, generation, pushed: await isPushed(deps, id, generation) });
    },
  });

  app.get('/api/nodes/:id/config', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'getNodeConfig',
      summary: "Get a node's snapshot, current or earlier, with secrets masked",
      description:
        'The snapshot as proto3 JSON with the names of the proto, every secret replaced by `***`. An earlier one is folded ' +
        'from the log again and compiled by the current compiler.',
      querystring: query({
        generation: queryInteger(0, Number.MAX_SAFE_INTEGER, 'The newest snapshot up to this generation').optional(),
      }),
      response: answers(snapshotSchema),
    },
    handler: async (request) => {
      const id = pathId(request.params, 'node');
      const {
        generation,
        checksum,
        snapshot: { ...snapshot },
      } = await snapshotOf(deps, id, request.query.generation);
      return ok({ node_id: id, generation, checksum, snapshot });
    },
  });
}

/** The newest snapshot, or an earlier one from the log. @throws ServiceError `not_found`, `unavailable` */
async function snapshotOf(deps: RestDeps, id: string, wanted: number | undefined): Promise<SnapshotJson> {
  const snapshot = await deps.delivery.snapshotJson(id, wanted);
  if (snapshot !== undefined) return snapshot;
  orNotFound(deps.fleet.generation(id), 'node');
  throw new ServiceError('not_found', `generation: the first one of this node is above ${wanted}`);
}

/**
 * True once the generation was sent to the node's session; false without a session, if its agent does not read, or
 * after a timeout.
 */
async function isPushed(deps: RestDeps, id: string, generation: number): Promise<boolean> {
  const deadline = deps.clock.monotonic() + tuning.pushWaitMs;
  for (;;) {
    const presence = deps.reports.presence(id);
    if (presence === undefined) return false;
    if ((pushFacts(deps, id, presence)?.generation ?? 0) >= generation) return true;
    // An agent that reads takes a snapshot at once. The rest of the wait is for snapshots delayed by changes.
    if (deps.delivery.unsentMs(id) > tuning.takenWithinMs || deps.clock.monotonic() >= deadline) return false;
    await sleep(tuning.pushPollMs);
  }
}

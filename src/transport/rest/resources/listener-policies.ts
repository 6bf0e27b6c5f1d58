/**
 * Listener policies, saved and deleted by their listener; `ports.ts` shows them. Fields are camelCase, as on all endpoints of
 * ports. Implements `docs/contract/rest.md#port-management`.
 */
import {
  policyTransports,
  priorityLabels,
  type PolicyKey,
  type PolicyState,
} from '../../../domain/listener-policy/policy.js';
import { commandContext, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, nothing, ok, type Shown } from '../answers/envelope.js';
import { body, ip, list, listenIp, oneOf, port, uuid } from '../schemas/fields.js';
import { etag } from '../schemas/headers.js';
import { query, queryInteger } from '../schemas/query.js';
import { component, documented } from '../schemas/documented.js';
import { listenerOrder, version } from '../schemas/shared-schemas.js';

const saveBody = body({
  nodeId: documented(uuid, 'Node of the listener'),
  transport: documented(oneOf(policyTransports), 'QUIC listens on udp', 'tcp'),
  listenAddr: documented(listenIp, 'IP address, in any notation', '0.0.0.0'),
  listenPort: documented(port, 'Port', 443),
  priorityOrder: documented(list(oneOf(priorityLabels)), 'The order in which kinds of routes match', [
    'tls',
    'reality',
  ]),
}).meta({ id: 'NewListenerPolicy', description: 'The order in which a listener matches' });

const policySchema = component('ListenerPolicy', 'The saved order in which a listener matches', {
  ...listenerOrder,
  version,
});

const keyOf = (named: {
  readonly nodeId: string;
  readonly transport: PolicyKey['transport'];
  readonly listenAddr: string;
  readonly listenPort: number;
}): PolicyKey => ({
  node_id: named.nodeId,
  transport: named.transport,
  listen_addr: named.listenAddr,
  listen_port: named.listenPort,
});

function view(policy: PolicyState): Shown<typeof policySchema> {
  return {
    nodeId: policy.node_id,
    transport: policy.transport,
    listenAddr: policy.listen_addr,
    listenPort: policy.listen_port,
    priorityOrder: policy.priority_order,
    version: policy.version,
  };
}

const url = '/api/nodes/ports/policies';
export function listenerPolicyRoutes(app: RestApp, deps: RestDeps): void {
  app.put(url, {
    config: { access: 'operator', takes: 'json', sendsEtag: true, refuses: ['conflict'], rollsOut: 'as planned' },
    schema: {
      operationId: 'saveListenerPolicy',
      summary: "Save a listener's policy; missing labels are added in the default order",
      description:
        'Creates the policy of the listener or replaces it; always a 200. Labels are kept in their order, duplicates removed.',
      querystring: query({}),
      body: saveBody,
      response: answers(policySchema),
    },
    handler: async (request, reply) => {
      const fields = { ...keyOf(request.body), priority_order: request.body.priorityOrder };
      const outcome = await deps.commands.policies.save(commandContext(request), request.headers['if-match'], fields);
      setCommandHeaders(reply, outcome);
      // Only a POST can be repeated.
      if (outcome.kind !== 'done') throw new Error('a PUT was answered as a repeat');
      // No GET of a single policy would send it.
      void reply.header('etag', etag(outcome.result.version));
      return ok(view(outcome.result));
    },
  });

  app.delete(url, {
    config: { access: 'operator', takes: 'none', refuses: ['not_found', 'conflict'], rollsOut: 'as planned' },
    schema: {
      operationId: 'deleteListenerPolicy',
      summary: "Delete a listener's policy and return to the default order",
      description: 'The query names the listener. A listener without a policy is a 404.',
      querystring: query({
        nodeId: uuid.meta({ description: 'Node of the listener' }),
        transport: oneOf(policyTransports).meta({ description: 'Transport of the listener; QUIC is udp' }),
        listenAddr: ip.meta({ description: 'Address of the listener, in any notation' }),
        listenPort: queryInteger(1, 65_535, 'Port of the listener'),
      }),
      response: answers(nothing),
    },
    handler: async (request, reply) => {
      const ifMatch = request.headers['if-match'];
      const outcome = await deps.commands.policies.remove(commandContext(request), ifMatch, keyOf(request.query));
      setCommandHeaders(reply, outcome);
      return ok({});
    },
  });
}

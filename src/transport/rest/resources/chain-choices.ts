/**
 * Choices for building a chain: the combinations of the transport table, and free ports of a node. The domain may still refuse
 * a choice. Implements `docs/contract/domain.md#l4-chain` and `docs/contract/console.md#pages`, chains.
 */
import { z } from 'zod';
import { outers, payloads, securities } from '../../../domain/chain/chain.js';
import { keyTypeOf, listenerTransport, transports } from '../../../domain/chain/transports.js';
import { keyTypes } from '../../../domain/credential/credential.js';
import { policyTransports } from '../../../domain/listener-policy/policy.js';
import { answers, ok } from '../answers/envelope.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented } from '../schemas/documented.js';
import { oneOf } from '../schemas/fields.js';
import { query } from '../schemas/query.js';

const transportSchema = component('ChainTransport', 'A valid combination of a hop, and what it requires', {
  payload: documented(z.enum(payloads), 'What the chain carries', 'tcp'),
  outer: documented(z.enum(outers), 'Transport of the hop before, or of the client', 'tcp'),
  security: documented(z.enum(securities), 'How that transport is secured', 'reality'),
  listens: documented(z.enum(policyTransports), 'Transport of the listener', 'tcp'),
  key_type: documented(
    z.enum(keyTypes).nullable(),
    'Key type of the credential that the hop needs; null where it must have none',
    'reality',
  ),
  server_names: documented(
    z.enum(['patterns', 'exact', 'none']),
    'Names that the hop may have: also wildcards, exact names only, or none',
    'exact',
  ),
  max_streams: documented(z.boolean(), 'Whether the hop may have `max_streams`', false),
});

const items = transports.flatMap(({ payloads: carried, outer, security, serverNames }) =>
  carried.map((payload) => ({
    payload,
    outer,
    security,
    listens: listenerTransport({ outer }),
    key_type: keyTypeOf(security),
    server_names: serverNames,
    max_streams: outer === 'quic',
  })),
);

export function chainTransportRoutes(app: RestApp): void {
  app.get('/api/l4-chains/transports', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listChainTransports',
      summary: 'List the valid combinations of payload, outer and security of a hop',
      description: 'Other combinations are refused. The list is the same in every fleet.',
      response: answers(
        z
          .object({ items: documented(z.array(transportSchema), 'The combinations') })
          .meta({ description: 'The combinations' }),
      ),
    },
    handler: async () => ok({ items }),
  });
}

export function freePortRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/nodes/:id/free-ports', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listFreePorts',
      summary: 'List some free ports of a node',
      description: 'The usual ones first. A claimed port may still be shared: the port table shows its routes.',
      querystring: query({
        transport: oneOf(policyTransports)
          .optional()
          .meta({ description: 'Transport of the listener; QUIC listens on udp', default: 'tcp' }),
      }),
      response: answers(
        component('FreePorts', 'Ports to choose from', {
          ports: documented(z.array(z.int()), 'At most 8', [443, 8443]),
        }),
      ),
    },
    handler: async (request) => {
      const { id } = orNotFound(deps.fleet.node(pathId(request.params, 'node')), 'node');
      return ok({ ports: [...deps.fleet.freePorts(id, request.query.transport ?? 'tcp')] });
    },
  });
}

/** The service's identity key and its rotation. Implements `docs/contract/rollouts.md#guided-rotation`. */
import { z } from 'zod';
import { answers, ok } from '../answers/envelope.js';
import { commandContext, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented, sample } from '../schemas/documented.js';
import { body, boolean } from '../schemas/fields.js';
import { timeOf } from '../schemas/shared-schemas.js';

const key = component('ServiceIdentityKey', 'An identity key of the service', {
  public_key: documented(z.string(), 'X25519, base64url: what agents pin', sample.publicKey),
  since: timeOf('Since when there is this key'),
});

const identitySchema = component('ServiceIdentity', 'The identity of the service, which agents pin', {
  current: key,
  next: key.nullable().meta({ description: 'The second key, which new PSKs carry; null while none is rotated to' }),
  nodes: component('ServiceIdentityNodes', 'How many nodes are proven on which key', {
    current: documented(z.int(), 'Nodes whose agent has connected with its PSK, which carries the current key', 3),
    next: documented(z.int(), 'The same of the next key', 0),
  }),
});

const retireBody = body({
  force: documented(boolean().optional(), 'Also while nodes need the old key; default `false`', false),
}).meta({ id: 'RetireServiceIdentity', description: 'How the old identity is retired' });

const url = '/api/service/identity';
export function serviceIdentityRoutes(app: RestApp, deps: RestDeps): void {
  const { serviceIdentity } = deps.commands;

  function view(): z.output<typeof identitySchema> {
    const { first, served } = deps.serviceIdentity();
    const [current, next] = [served.current, served.next].map((one) =>
      one === null ? null : { public_key: one.static_public, since: one.since },
    );
    const counts = { current: 0, next: 0 };
    for (const id of deps.fleet.nodeIds()) {
      const psk = deps.fleet.node(id)?.psk ?? null;
      if (psk === null) continue;
      // A rekey may have proven the candidate; the facts do not count it as a new session.
      const connected = psk.proven === true || (deps.agentFacts.of(id).session?.at ?? '') >= psk.issued_at;
      if (!connected) continue;
      if (next !== null && psk.service_public === next?.public_key) counts.next += 1;
      else if (psk.service_public === served.current?.static_public) counts.current += 1;
    }
    return { current: current ?? first, next: next ?? null, nodes: counts };
  }

  app.get(url, {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'getServiceIdentity',
      summary: 'Get the identity keys that the service answers under',
      description: 'A node counts once its agent has connected with its newest PSK.',
      response: answers(identitySchema),
    },
    handler: () => ok(view()),
  });

  app.post(`${url}/rotate`, {
    config: { access: 'admin', takes: 'none', refuses: ['conflict'] },
    schema: {
      operationId: 'rotateServiceIdentity',
      summary: 'Make a second identity key',
      description:
        'PSKs and join tokens issued from now on carry it; sessions under either succeed. While there is a second key, it is a 409.',
      response: answers(identitySchema),
    },
    handler: async (request, reply) => {
      setCommandHeaders(reply, await serviceIdentity.rotate(commandContext(request)));
      return ok(view());
    },
  });

  app.post(`${url}/retire`, {
    config: { access: 'admin', takes: 'optional', refuses: ['conflict'] },
    schema: {
      operationId: 'retireServiceIdentity',
      summary: 'End the old identity key, with the join tokens from before the rotation',
      description:
        'A 409 names nodes whose PSK still carries the old key, at most 20 of them, unless `force` is true: these nodes need a new PSK then.',
      body: retireBody,
      response: answers(identitySchema),
    },
    handler: async (request, reply) => {
      const { force = false } = request.body;
      setCommandHeaders(reply, await serviceIdentity.retire(commandContext(request), force));
      return ok(view());
    },
  });
}

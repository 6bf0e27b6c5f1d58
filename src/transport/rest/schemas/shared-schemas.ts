/** Schemas of answers that several resources share. Implements `docs/contract/rest.md#consistency`. */
import { z } from 'zod';
import { roles } from '../../../domain/accounts/user.js';
import { policyTransports, priorityLabels } from '../../../domain/listener-policy/policy.js';
import { described, sample } from '../openapi/openapi-text.js';

/** The id of a resource in an answer. @param whose what the document says of it */
export function idOf(whose: string, example: string) {
  return described(z.string().meta({ format: 'uuid' }), whose, example);
}

export const resourceId = idOf('Id, a UUID', sample.entryNode);
export const nodeId = idOf('Id of the node', sample.entryNode);

/** A time in an answer. */
export function timeOf(what: string, example: string = sample.time) {
  return described(z.string().meta({ format: 'date-time' }), `${what}; RFC 3339, UTC, milliseconds`, example);
}

export const time = timeOf('A time');

export const version = described(z.int(), 'Grows with each event of the resource; its `ETag`', 3);

export const timestamps = {
  created_at: timeOf('When it was created'),
  updated_at: timeOf('When it was changed last', sample.later),
  version,
};

export const aboutRole = '`viewer` reads, `operator` changes all but users, `admin` may do everything';

export const role = described(z.enum(roles), aboutRole, 'operator');

export const upstreamTlsSchema = z
  .object({
    server_name: described(z.string(), 'Name that the gateway asks for and the certificate must have', 'app.example'),
    spki_pins_sha256: described(
      z.array(z.string()),
      "Base64 of the SHA-256 of the certificate's public key; one of them must match",
      [sample.pin],
    ),
  })
  .meta({ id: 'ShownUpstreamTls', description: 'The TLS from a gateway to an upstream' });

export const applyErrors = described(
  z.array(
    z
      .object({
        resource_type: described(z.string(), 'Type of the resource that the agent could not apply', 'l4_chain'),
        resource_id: described(z.string(), 'Its id', sample.chain),
        path: described(z.string(), 'What of it', 'tcp_rules[0].listen_port'),
        message: described(z.string(), "The agent's words", 'address already in use'),
      })
      .meta({ id: 'ApplyError', description: 'Why an agent rejected a snapshot' }),
  ),
  'Why the agent rejected it; empty unless it did',
  [],
);

/** The key of a listener and the order of its match kinds, in camel case as on all port endpoints. */
export const listenerOrder = {
  nodeId,
  transport: described(z.enum(policyTransports), 'QUIC listens on udp', 'tcp'),
  listenAddr: described(z.string(), 'IP address', '0.0.0.0'),
  listenPort: described(z.int(), 'Port', 443),
  priorityOrder: described(z.array(z.enum(priorityLabels)), 'In which order kinds of routes match', [
    ...priorityLabels,
  ]),
};

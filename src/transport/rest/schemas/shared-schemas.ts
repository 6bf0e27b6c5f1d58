/** Schemas of answers that several resources share. Implements `docs/contract/rest.md#consistency`. */
import { z } from 'zod';
import { roles } from '../../../domain/accounts/user.js';
import { policyTransports, priorityLabels } from '../../../domain/listener-policy/policy.js';
import { statusTypes } from '../../../domain/status/status.js';
import { component, documented, sample } from './documented.js';

/** The id of a resource in an answer. */
export function idOf(whose: string, example: string) {
  return documented(z.string().meta({ format: 'uuid' }), whose, example);
}

/** A resource that uses another. */
export const referrer = component('Referrer', 'A resource that uses another', {
  type: documented(z.string(), 'Type of the resource', 'l4_chain'),
  id: idOf('Its id', sample.chain),
  name: documented(z.string(), 'Its name', 'front'),
});

export const resourceId = idOf('Id, a UUID', sample.entryNode);
export const nodeId = idOf('Id of the node', sample.entryNode);

/** A time in an answer. */
export function timeOf(what: string, example: string = sample.time) {
  return documented(z.string().meta({ format: 'date-time' }), `${what}; RFC 3339, UTC, milliseconds`, example);
}

export const time = timeOf('A time');

export const version = documented(z.int(), 'Increases with each event of the resource; its `ETag`', 3);

export const managedBy = documented(
  z.string().nullable(),
  'The set of the fleet file that owns it; null for none',
  'edge-eu',
);

export const timestamps = {
  created_at: timeOf('When it was created'),
  updated_at: timeOf('When it was last changed', sample.later),
  version,
};

export const aboutRole = '`viewer` reads, `operator` changes all but users, `admin` may do everything';

export const role = documented(z.enum(roles), aboutRole, 'operator');

export const applyErrors = documented(
  z.array(
    component('ApplyError', 'Why an agent rejected a snapshot', {
      resource_type: documented(z.string(), 'Type of the resource that the agent could not apply', 'l4_chain'),
      resource_id: documented(z.string(), 'Its id', sample.chain),
      path: documented(z.string(), 'The part of it', 'tcp_rules[0].listen_port'),
      message: documented(z.string(), "The agent's words", 'address already in use'),
    }),
  ),
  'Why the agent rejected it; empty unless it did',
  [],
);

/** The key of a listener and the order of its match kinds, in camel case as on all port endpoints. */
export const listenerOrder = {
  nodeId,
  transport: documented(z.enum(policyTransports), 'QUIC listens on udp', 'tcp'),
  listenAddr: documented(z.string(), 'IP address', '0.0.0.0'),
  listenPort: documented(z.int(), 'Port', 443),
  priorityOrder: documented(z.array(z.enum(priorityLabels)), 'The order in which kinds of routes match', [
    ...priorityLabels,
  ]),
};

/** A resource that has a status. */
export const statusResource = component('StatusResource', 'A resource that has a status', {
  type: documented(z.enum(statusTypes), 'Type of the resource', 'l4_chain'),
  id: idOf('Its id', sample.chain),
  name: documented(z.string(), 'Its name at that time', 'front'),
});

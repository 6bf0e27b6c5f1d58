/** Schemas of answers that several resources share. Implements `docs/contract/rest.md#consistency`. */
import { z } from 'zod';
import { roles } from '../../domain/accounts/user.js';
import { policyTransports, priorityLabels } from '../../domain/listener-policy/policy.js';

export const time = z.string().meta({ format: 'date-time', description: 'RFC 3339, UTC, milliseconds' });

export const timestamps = { created_at: time, updated_at: time, version: z.int() };

export const role = z.enum(roles);

export const upstreamTlsSchema = z.object({ server_name: z.string(), spki_pins_sha256: z.array(z.string()) });

export const applyErrors = z.array(
  z.object({ resource_type: z.string(), resource_id: z.string(), path: z.string(), message: z.string() }),
);

/** The key of a listener and the order of its match kinds, in camel case as on all port endpoints. */
export const listenerOrder = {
  nodeId: z.string(),
  transport: z.enum(policyTransports),
  listenAddr: z.string(),
  listenPort: z.int(),
  priorityOrder: z.array(z.enum(priorityLabels)),
};

/**
 * Warnings in answers: agents that cannot run what was asked of them. Implements
 * `docs/contract/agent-protocol.md#configuration`, "Features".
 */
import { z } from 'zod';
import type { ResourceType } from '../../../domain/fleet/resources.js';
import { limits } from '../../../kernel/limits.js';
import { warningsOf } from '../../../reports/status.js';
import type { RestDeps } from '../deps.js';
import { documented } from '../schemas/documented.js';

export const warningsSchema = documented(
  z.array(z.string()),
  `Agents that cannot run what this asks of them: a sentence for each node and feature, at most ${limits.rest.warnings}, the last of which counts the rest. Nothing is refused because of it`,
  ['relay-1 runs reference-agent 0.2.0, which cannot run quic_reality'],
);

/**
 * The parts of a resource's routes by which a create and an update warn.
 * @param name of the resource in schemas
 */
export function warning<S extends z.ZodObject>(deps: RestDeps, type: ResourceType, name: string, schema: S) {
  const saved = schema
    .extend({ warnings: warningsSchema })
    .meta({ id: `Saved${name}`, description: 'The resource as it was saved, with warnings' });
  return {
    schema,
    createdSchema: saved,
    updatedSchema: saved,
    warnings: (id: string) => warningsOf(deps, deps.fleet.needs(type, id, 'current')),
  };
}

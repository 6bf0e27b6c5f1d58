/** The place of an error of an apply, as the REST API names it. Pure. Implements `docs/data-plane.md#errors`. */
import type { ConfigApplyError } from '../../gen/svc/control/v1/config.js';
import type { RuleOrigin } from '../../gen/svc/control/v1/transport.js';

/**
 * An error at a field of the resource that the rule came from: a hop of a chain or route, or an L3 network.
 * @param field of this hop, of the resource, or, after `next.`, of the hop that this one dials
 */
export function applyError(origin: RuleOrigin, field: string, message: string): ConfigApplyError {
  const path =
    origin.resourceType === 'l3_network'
      ? 'tunnels'
      : resourceFields.has(field)
        ? field
        : field.startsWith('next.')
          ? `hops[${origin.hopIndex + 1}].${field.slice('next.'.length)}`
          : `hops[${origin.hopIndex}].${field}`;
  return { resourceType: origin.resourceType, resourceId: origin.resourceId, path, message: message.slice(0, 500) };
}

/** Fields of the resource itself rather than of one of its hops. */
const resourceFields: ReadonlySet<string> = new Set(['target', 'target.upstream_id', 'target.tls', 'backend', 'host']);

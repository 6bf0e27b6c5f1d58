/** L4 upstreams: where chains end. Implements `docs/contract/rest.md#l4-upstreams`. */
import { z } from 'zod';
import type { UpstreamDefinition } from '../../domain/upstream/upstream.js';
import { limits } from '../../kernel/limits.js';
import type { RestApp, RestDeps } from './deps.js';
import { boolean, distinct, dnsName, endpoint, integer, name, upstreamTls } from './fields.js';
import { resourceRoutes } from './resource-routes.js';
import type { Shape } from './resource-shape.js';
import { shownResource } from './resource-shape.js';

const interval = limits.rest.healthCheckIntervalMs;

const shape: Shape<UpstreamDefinition> = {
  name: { asked: name, shown: z.string(), only: 'create' },
  endpoint: { asked: endpoint, shown: z.string() },
  server_names: { asked: distinct(dnsName), shown: z.array(z.string()), initial: [] },
  health_check_interval_ms: {
    asked: integer(interval.min, interval.max),
    shown: z.int(),
    initial: interval.default,
  },
  enabled: { asked: boolean(), shown: z.boolean(), initial: true, only: 'update' },
  tls: {
    asked: upstreamTls.nullable(),
    shown: z.object({ server_name: z.string(), spki_pins_sha256: z.array(z.string()) }).nullable(),
    initial: null,
  },
};

export function upstreamRoutes(app: RestApp, deps: RestDeps): void {
  resourceRoutes(app, {
    path: '/api/l4-upstreams',
    what: 'L4 upstream',
    tag: 'l4-upstreams',
    summaries: {
      list: 'List L4 upstreams',
      create: 'Create an L4 upstream',
      get: 'Get an L4 upstream',
      update: 'Change an L4 upstream; its name stays',
      remove: 'Delete an L4 upstream that no chain uses',
    },
    shape,
    shown: shownResource('Upstream', shape, {}),
    ...deps.projections.resources.l4_upstream,
    ...deps.commands.resources.l4_upstream,
    // Shown as it is stored.
    view: (upstream) => upstream,
    createdView: (upstream) => upstream,
  });
}

/** L4 upstreams: where chains end. Implements `docs/contract/rest.md#l4-upstreams`. */
import { z } from 'zod';
import type { UpstreamDefinition } from '../../domain/upstream/upstream.js';
import { limits } from '../../kernel/limits.js';
import type { RestApp, RestDeps } from './deps.js';
import { boolean, distinct, dnsName, endpoint, integer, name, upstreamTls } from './fields.js';
import { resourceRoutes } from './resource-routes.js';
import type { Shape } from './resource-shape.js';
import { resourceSchema } from './resource-shape.js';
import { upstreamTlsSchema } from './shared-schemas.js';

const interval = limits.rest.healthCheckIntervalMs;

const shape: Shape<UpstreamDefinition> = {
  name: { request: name, response: z.string(), only: 'create' },
  endpoint: { request: endpoint, response: z.string() },
  server_names: { request: distinct(dnsName), response: z.array(z.string()), initial: [] },
  health_check_interval_ms: {
    request: integer(interval.min, interval.max),
    response: z.int(),
    initial: interval.default,
  },
  enabled: { request: boolean(), response: z.boolean(), initial: true, only: 'update' },
  tls: { request: upstreamTls.nullable(), response: upstreamTlsSchema.nullable(), initial: null },
};

export function upstreamRoutes(app: RestApp, deps: RestDeps): void {
  resourceRoutes(app, {
    path: '/api/l4-upstreams',
    what: 'L4 upstream',
    tag: 'l4-upstreams',
    names: { one: 'L4Upstream', many: 'L4Upstreams' },
    summaries: {
      list: 'List L4 upstreams',
      create: 'Create an L4 upstream',
      get: 'Get an L4 upstream',
      update: 'Change an L4 upstream; its name stays',
      remove: 'Delete an L4 upstream that no chain uses',
    },
    details: {
      create: '`health_check_path` is refused, and so is `enabled`: an upstream starts enabled.',
      update: '`name` is refused.',
    },
    shape,
    schema: resourceSchema('Upstream', shape, {}),
    ...deps.projections.resources.l4_upstream,
    ...deps.commands.resources.l4_upstream,
    // Answered as it is stored.
    view: (upstream) => upstream,
    createdView: (upstream) => upstream,
  });
}

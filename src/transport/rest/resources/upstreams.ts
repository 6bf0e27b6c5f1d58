/** L4 upstreams: where chains end. Implements `docs/contract/rest.md#l4-upstreams`. */
import { z } from 'zod';
import type { UpstreamDefinition } from '../../../domain/upstream/upstream.js';
import { limits } from '../../../kernel/limits.js';
import type { RestApp, RestDeps } from '../deps.js';
import {
  boolean,
  distinct,
  dnsName,
  endpoint,
  integer,
  name,
  upstreamReality,
  upstreamTls,
} from '../schemas/fields.js';
import { resourceRoutes } from './resource-routes.js';
import type { Shape } from './resource-shape.js';
import { resourceSchema } from './resource-shape.js';
import { sample } from '../openapi/openapi-text.js';
import { idOf, upstreamRealitySchema, upstreamTlsSchema } from '../schemas/shared-schemas.js';

const interval = limits.rest.healthCheckIntervalMs;

const shape: Shape<UpstreamDefinition> = {
  name: {
    about: 'Name, unique among upstreams; cannot be changed',
    example: 'app',
    request: name,
    response: z.string(),
    only: 'create',
  },
  endpoint: {
    about: 'Where chains end: `host:port`, with an IPv6 address in brackets',
    example: 'app.example:8443',
    request: endpoint,
    response: z.string(),
  },
  server_names: {
    about: 'Names that the gateway sends or matches upstream (SNI)',
    example: ['app.example'],
    request: distinct(dnsName),
    response: z.array(z.string()),
    initial: [],
  },
  health_check_interval_ms: {
    about: 'Milliseconds between health checks',
    example: interval.default,
    request: integer(interval.min, interval.max),
    response: z.int(),
    initial: interval.default,
  },
  enabled: {
    about: 'Whether gateways open new connections to it',
    example: true,
    request: boolean(),
    response: z.boolean(),
    initial: true,
    only: 'update',
  },
  tls: {
    about: 'TLS from the gateway to the upstream; null without',
    example: { server_name: 'app.example', spki_pins_sha256: [sample.pin] },
    request: upstreamTls.nullable(),
    response: upstreamTlsSchema.nullable(),
    initial: null,
  },
  reality: {
    about: 'The REALITY server that the upstream is; null when it is none. Never beside tls',
    example: { outer: 'tcp', public_key: sample.publicKey, server_name: 'www.example', short_id: '0a1b2c3d' },
    request: upstreamReality.nullable(),
    response: upstreamRealitySchema.nullable(),
    initial: null,
  },
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
    schema: resourceSchema('L4Upstream', 'Where L4 chains end', shape, { id: idOf('Id, a UUID', sample.upstream) }),
    ...deps.fleet.resources.l4_upstream,
    ...deps.commands.resources.l4_upstream,
    // Answered as it is stored.
    view: (upstream) => upstream,
    createdView: (upstream) => upstream,
  });
}

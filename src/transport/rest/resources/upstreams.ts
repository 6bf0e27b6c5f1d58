/** L4 upstreams, the targets of chains. Implements `docs/contract/rest.md#l4-upstreams`. */
import { z } from 'zod';
import type { Referrer } from '../../../domain/fleet/referrers.js';
import { upstreamStatuses, type UpstreamStatus } from '../../../domain/upstream/health.js';
import { upstreamKey, type UpstreamDefinition, type UpstreamState } from '../../../domain/upstream/upstream.js';
import { limits } from '../../../kernel/limits.js';
import type { RestApp, RestDeps } from '../deps.js';
import { statusOfUpstream } from '../../../reports/status.js';
import {
  boolean,
  distinct,
  dnsName,
  endpoint,
  integer,
  name,
  oneOf,
  upstreamReality,
  upstreamTls,
} from '../schemas/fields.js';
import { resourceRoutes } from './resource-routes.js';
import { resourceSchema, type Shape } from './resource-shape.js';
import { documented, sample } from '../schemas/documented.js';
import { idOf, referrer } from '../schemas/shared-schemas.js';

const interval = limits.rest.healthCheckIntervalMs;

const shape: Shape<UpstreamDefinition> = {
  name: {
    about: 'Name, unique among upstreams; cannot be changed',
    example: 'app',
    request: name,
    only: 'create',
  },
  endpoint: {
    about: 'Address: `host:port`, with an IPv6 address in brackets',
    example: 'app.example:8443',
    request: endpoint,
  },
  server_names: {
    about: 'Names that the gateway sends or matches upstream (SNI)',
    example: ['app.example'],
    request: distinct(dnsName),
    initial: [],
  },
  health_check_interval_ms: {
    about: 'Milliseconds between health checks',
    example: interval.default,
    request: integer(interval.min, interval.max),
    initial: interval.default,
  },
  enabled: {
    about: 'Whether gateways open new connections to it',
    example: true,
    request: boolean(),
    initial: true,
    only: 'update',
  },
  tls: {
    about: 'TLS from the gateway to the upstream; null for none',
    example: { server_name: 'app.example', spki_pins_sha256: [sample.pin] },
    request: upstreamTls.nullable(),
    initial: null,
  },
  reality: {
    about: 'Set when the upstream is a REALITY server, else null; excludes tls',
    example: { outer: 'tcp', public_key: sample.publicKey, server_name: 'www.example', short_id: '0a1b2c3d' },
    request: upstreamReality.nullable(),
    initial: null,
  },
};

const upstreamSchema = resourceSchema('L4Upstream', 'Where L4 chains end', shape, {
  id: idOf('Id, a UUID', sample.upstream),
  health: documented(
    z.enum(upstreamStatuses),
    '`unhealthy` when an online node that uses it says so, `healthy` when at least one reports and none says so',
    'healthy',
  ),
  in_use_by: documented(
    z.array(referrer),
    `The chains that name it, in the current or the deployed definition, disabled ones too: the first ${limits.rest.usersShown} by name`,
  ),
  in_use_by_total: documented(z.int(), 'Number of all resources that use it', 1),
});

const filters = {
  health: oneOf(upstreamStatuses).optional().meta({ description: 'Only upstreams of this health' }),
};
type Filters = z.output<z.ZodObject<typeof filters>>;

interface UpstreamView extends UpstreamState {
  readonly health: UpstreamStatus;
  readonly in_use_by: readonly Referrer[];
  readonly in_use_by_total: number;
}

export function upstreamRoutes(app: RestApp, deps: RestDeps): void {
  const queries = deps.fleet.resources.l4_upstream;

  const view = (upstream: UpstreamState): UpstreamView => {
    const { items, total } = deps.fleet.firstReferrers(upstreamKey.type, upstream.id, limits.rest.usersShown);
    return { ...upstream, health: statusOfUpstream(deps, upstream.id), in_use_by: items, in_use_by_total: total };
  };

  resourceRoutes(app, {
    path: '/api/l4-upstreams',
    what: 'L4 upstream',
    rollsOut: true,
    names: { one: 'L4Upstream', many: 'L4Upstreams' },
    summaries: {
      list: 'List L4 upstreams',
      create: 'Create an L4 upstream',
      get: 'Get an L4 upstream',
      update: 'Change an L4 upstream, except its name',
      remove: 'Delete an L4 upstream that no chain uses',
    },
    details: {
      create: '`health_check_path` is refused, and so is `enabled`: an upstream starts enabled.',
      update: '`name` is refused.',
    },
    shape,
    schema: upstreamSchema,
    filters,
    async list(paged, checked) {
      const { health } = checked as Filters;
      if (health !== undefined) await deps.counts.now();
      // `q` finds one by its endpoint too.
      const mentions = ({ endpoint }: UpstreamState, searched: string): boolean =>
        endpoint.toLowerCase().includes(searched);
      const matches = ({ id }: UpstreamState): boolean => deps.counts.upstreamStatus(id) === health;
      return queries.list({ ...paged, mentions, ...(health !== undefined && { matches }) });
    },
    get: queries.get,
    ...deps.commands.resources.l4_upstream,
    views: (upstreams) => upstreams.map(view),
  });
}

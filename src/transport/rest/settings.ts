/** Connectivity settings: one per installation. Implements `docs/contract/rest.md#connectivity-settings`, and `docs/contract/configuration.md`. */
import { z } from 'zod';
import type { SettingsState } from '../../domain/settings/settings.js';
import { limits } from '../../kernel/limits.js';
import { commandContext, settle } from './consistency.js';
import type { RestApp, RestDeps } from './deps.js';
import { answers, ok } from './envelope.js';
import { body, boolean, integer, list, object, port, uuid } from './fields.js';
import { conditionalHeaders, etag, readHeaders } from './headers.js';
import { noQuery } from './query.js';

/** A week: a node that is silent for longer is offline by any measure. */
const offlineAfterSecsMax = 7 * 24 * 3600;

const override = object({
  node_id: uuid,
  multiplex: boolean().nullable(),
  multiplex_port: port.nullable().optional(),
});

const updateBody = body({
  multiplex: boolean().optional(),
  multiplex_port: port.nullable().optional(),
  heartbeat_interval_secs: integer(1, 3600).optional(),
  metrics_interval_secs: integer(5, 86_400).optional(),
  offline_after_secs: integer(2, offlineAfterSecsMax).nullable().optional(),
  nodes: list(override, 0, limits.rest.settingsNodes).optional(),
}).superRefine((asked, ctx) => {
  const refuse = (path: PropertyKey[], message: string): void => {
    ctx.issues.push({ code: 'custom', path, message, input: undefined });
  };
  if (asked.multiplex === true && asked.multiplex_port === null) {
    refuse(['multiplex_port'], 'expected a port when multiplex is true');
  }
  const { offline_after_secs: offline, heartbeat_interval_secs: heartbeat } = asked;
  if (typeof offline === 'number' && heartbeat !== undefined && offline < 2 * heartbeat) {
    refuse(['offline_after_secs'], `expected at least 2 × heartbeat_interval_secs, which is ${2 * heartbeat}`);
  }
  const seen = new Set<string>();
  for (const [index, one] of (asked.nodes ?? []).entries()) {
    if (seen.has(one.node_id)) refuse(['nodes', index, 'node_id'], 'expected each node once');
    seen.add(one.node_id);
    if (one.multiplex === null && typeof one.multiplex_port === 'number') {
      refuse(['nodes', index, 'multiplex_port'], 'expected none when multiplex is null, which removes the override');
    }
  }
});

const settings = z
  .object({
    multiplex: z.boolean(),
    multiplex_port: z.int().nullable(),
    heartbeat_interval_secs: z.int(),
    metrics_interval_secs: z.int(),
    offline_after_secs: z.int().nullable(),
    nodes: z.array(z.object({ node_id: z.string(), multiplex: z.boolean(), multiplex_port: z.int().nullable() })),
    version: z.int(),
  })
  .meta({ id: 'ConnectivitySettings' });

const tags = ['settings'];

export function settingsRoutes(app: RestApp, deps: RestDeps): void {
  app.route({
    method: 'GET',
    url: '/api/settings/connectivity',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      summary: 'Get the connectivity settings',
      tags,
      querystring: noQuery,
      headers: readHeaders,
      response: answers(settings),
    },
    handler: async (_request, reply) => {
      const shown = view(deps.delivery.settings());
      void reply.header('etag', etag(shown.version));
      return ok(shown);
    },
  });

  app.route({
    method: 'PUT',
    url: '/api/settings/connectivity',
    config: { access: 'operator', takes: 'json' },
    schema: {
      summary: "Change the connectivity settings; `nodes` sets those nodes' overrides",
      tags,
      querystring: noQuery,
      headers: conditionalHeaders,
      body: updateBody,
      response: answers(settings),
    },
    handler: async (request, reply) => {
      const outcome = await deps.commands.settings.update(
        commandContext(request),
        request.headers['if-match'],
        request.body,
      );
      settle(reply, outcome);
      return ok(view(outcome.kind === 'done' ? outcome.result : deps.delivery.settings()));
    },
  });
}

function view(state: SettingsState): z.output<typeof settings> {
  return {
    multiplex: state.multiplex,
    multiplex_port: state.multiplex_port,
    heartbeat_interval_secs: state.heartbeat_interval_secs,
    metrics_interval_secs: state.metrics_interval_secs,
    offline_after_secs: state.offline_after_secs,
    nodes: Object.entries(state.nodes)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([node_id, one]) => ({ node_id, multiplex: one.multiplex, multiplex_port: one.multiplex_port })),
    version: state.version,
  };
}

/** Connectivity settings: one value per installation. Implements `docs/contract/rest.md#connectivity-settings`. */
import { z } from 'zod';
import { settingsProblems, settingsRanges } from '../../domain/settings/definition.js';
import type { SettingsState } from '../../domain/settings/settings.js';
import { limits } from '../../kernel/limits.js';
import { commandContext, setCommandHeaders } from './consistency.js';
import type { RestApp, RestDeps } from './deps.js';
import { answers, ok } from './envelope.js';
import { body, boolean, integer, list, object, port, uuid } from './fields.js';
import { conditionalHeaders, etag, readHeaders } from './headers.js';
import { noQuery } from './query.js';

const override = object({
  node_id: uuid,
  multiplex: boolean().nullable(),
  multiplex_port: port.nullable().optional(),
});

const seconds = (field: keyof typeof settingsRanges) => integer(settingsRanges[field].min, settingsRanges[field].max);

const updateBody = body({
  multiplex: boolean().optional(),
  multiplex_port: port.nullable().optional(),
  heartbeat_interval_secs: seconds('heartbeat_interval_secs').optional(),
  metrics_interval_secs: seconds('metrics_interval_secs').optional(),
  offline_after_secs: seconds('offline_after_secs').nullable().optional(),
  nodes: list(override, 0, limits.rest.settingsNodes).optional(),
}).superRefine((update, ctx) => {
  const refuse = (path: PropertyKey[], message: string): void => {
    ctx.issues.push({ code: 'custom', path, message, input: undefined });
  };
  for (const { field, message } of settingsProblems(update)) refuse([field], message);
  const ids = new Set<string>();
  for (const [index, { node_id, multiplex, multiplex_port }] of (update.nodes ?? []).entries()) {
    if (ids.has(node_id)) refuse(['nodes', index, 'node_id'], 'expected each node once');
    ids.add(node_id);
    if (multiplex === null && typeof multiplex_port === 'number') {
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

const tags = ['settings'] as const;

export function settingsRoutes(app: RestApp, deps: RestDeps): void {
  app.route({
    method: 'GET',
    url: '/api/settings/connectivity',
    config: { access: 'anyone', takes: 'none', sendsEtag: true },
    schema: {
      operationId: 'getConnectivitySettings',
      summary: 'Get the connectivity settings',
      description: 'The settings of all nodes, and the overrides of single nodes.',
      tags,
      querystring: noQuery,
      headers: readHeaders,
      response: answers(settings),
    },
    handler: async (_request, reply) => {
      const current = deps.delivery.settings();
      void reply.header('etag', etag(current.version));
      return ok(view(current));
    },
  });

  app.route({
    method: 'PUT',
    url: '/api/settings/connectivity',
    config: { access: 'operator', takes: 'json', refuses: ['conflict'] },
    schema: {
      operationId: 'updateConnectivitySettings',
      summary: "Change the connectivity settings; `nodes` sets those nodes' overrides",
      description:
        'A field that is left out stays. An entry of `nodes` sets the override of that node, one with `multiplex: null` removes it; the overrides of other nodes stay.',
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
      setCommandHeaders(reply, outcome);
      return ok(view(outcome.kind === 'done' ? outcome.result : deps.delivery.settings()));
    },
  });
}

/** The schema of the answer leaves out what it does not name. */
function view(state: SettingsState): z.output<typeof settings> {
  return { ...state, nodes: Object.entries(state.nodes).map(([node_id, node]) => ({ node_id, ...node })) };
}

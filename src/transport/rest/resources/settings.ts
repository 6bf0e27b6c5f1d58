/** Connectivity settings: one value per installation. Implements `docs/contract/rest.md#connectivity-settings`. */
import { z } from 'zod';
import { rolloutPolicyKey } from '../../../domain/rollout-policy/rollout-policy.js';
import { settingsProblems, settingsRanges, type SettingsState } from '../../../domain/settings/settings.js';
import { limits } from '../../../kernel/limits.js';
import { warningsOf } from '../../../reports/status.js';
import { commandContext, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok } from '../answers/envelope.js';
import { body, boolean, integer, list, name, object, port, uuid } from '../schemas/fields.js';
import { etag } from '../schemas/headers.js';
import { component, documented } from '../schemas/documented.js';
import { nodeId, version } from '../schemas/shared-schemas.js';
import { warningsSchema } from './warnings.js';

/** Descriptions of fields that requests and answers share. */
const about = {
  multiplex: 'Whether links between nodes are multiplexed',
  multiplex_port: 'On which port; null without',
  heartbeat_interval_secs: 'Seconds between heartbeats',
  metrics_interval_secs: 'Seconds between reports of metrics',
  offline_after_secs: 'Seconds without a heartbeat after which a node is offline; null derives them from the heartbeat',
  rollout_policy: 'Rollout policy, by name, of commands that name none; null for no rollout',
  upgrade_rollout_policy: 'Likewise of a raised compiler version',
  node_id: 'Node that differs from the others',
  override: 'Whether its links are multiplexed',
  override_port: 'On which port; null for the port of all nodes',
};

const override = object({
  node_id: documented(uuid, about.node_id),
  multiplex: documented(boolean().nullable(), `${about.override}; null removes the override`, true),
  multiplex_port: documented(port.nullable().optional(), about.override_port, 7444),
}).meta({ id: 'NewMultiplexOverride', description: 'The override of one node' });

const seconds = (field: keyof typeof settingsRanges) => integer(settingsRanges[field].min, settingsRanges[field].max);

/** The settings that documents of the fleet describe. */
const described = {
  multiplex: documented(boolean().optional(), about.multiplex, true),
  multiplex_port: documented(port.nullable().optional(), about.multiplex_port, 7443),
  heartbeat_interval_secs: documented(seconds('heartbeat_interval_secs').optional(), about.heartbeat_interval_secs, 10),
  metrics_interval_secs: documented(seconds('metrics_interval_secs').optional(), about.metrics_interval_secs, 60),
  offline_after_secs: documented(seconds('offline_after_secs').nullable().optional(), about.offline_after_secs, 30),
  nodes: documented(
    list(override, 0, limits.rest.settingsNodes).optional(),
    'Overrides of these nodes; those of others stay',
  ),
};

type Update = z.output<ReturnType<typeof body<typeof described>>>;

function checkUpdate(update: Update, ctx: z.core.$RefinementCtx): void {
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
}

export const settingsInFile = body(described).superRefine(checkUpdate);
const settingsBody = body({
  ...described,
  rollout_policy: documented(name.nullable().optional(), about.rollout_policy, 'careful'),
  upgrade_rollout_policy: documented(name.nullable().optional(), about.upgrade_rollout_policy, null),
})
  .superRefine(checkUpdate)
  .meta({ id: 'ConnectivitySettingsChanges', description: 'Changes of the settings. Omitted fields stay' });

const settings = component('ConnectivitySettings', 'How agents and nodes connect', {
  multiplex: documented(z.boolean(), about.multiplex, true),
  multiplex_port: documented(z.int().nullable(), about.multiplex_port, 7443),
  heartbeat_interval_secs: documented(z.int(), about.heartbeat_interval_secs, 10),
  metrics_interval_secs: documented(z.int(), about.metrics_interval_secs, 60),
  offline_after_secs: documented(z.int().nullable(), about.offline_after_secs, 30),
  rollout_policy: documented(z.string().nullable(), about.rollout_policy, 'careful'),
  upgrade_rollout_policy: documented(z.string().nullable(), about.upgrade_rollout_policy, null),
  nodes: documented(
    z.array(
      component('MultiplexOverride', 'The override of one node', {
        node_id: documented(nodeId, about.node_id),
        multiplex: documented(z.boolean(), about.override, true),
        multiplex_port: documented(z.int().nullable(), about.override_port, 7444),
      }),
    ),
    'Overrides, one for each node that has any',
  ),
  version,
});

const saved = settings
  .extend({ warnings: warningsSchema })
  .meta({ id: 'SavedConnectivitySettings', description: 'The settings as they were saved, with warnings' });

export function settingsRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/settings/connectivity', {
    config: { access: 'anyone', takes: 'none', sendsEtag: true },
    schema: {
      operationId: 'getConnectivitySettings',
      summary: 'Get the connectivity settings',
      description: 'The settings of all nodes, and the overrides of single nodes.',
      response: answers(settings),
    },
    handler: async (_request, reply) => {
      const current = deps.fleet.settings();
      void reply.header('etag', etag(current.version));
      return ok(view(deps, current));
    },
  });

  app.put('/api/settings/connectivity', {
    config: { access: 'operator', takes: 'json', refuses: ['conflict'], rollsOut: 'as planned' },
    schema: {
      operationId: 'updateConnectivitySettings',
      summary: "Change the connectivity settings; `nodes` sets those nodes' overrides",
      description:
        'A field that is left out stays. An entry of `nodes` sets the override of that node, one with `multiplex: null` removes it; the overrides of other nodes stay.',
      body: settingsBody,
      response: answers(saved),
    },
    handler: async (request, reply) => {
      const outcome = await deps.commands.settings.update(
        commandContext(request),
        request.headers['if-match'],
        request.body,
      );
      setCommandHeaders(reply, outcome);
      const isDone = outcome.kind === 'done';
      const events = isDone ? outcome.events : (outcome.command?.events ?? []);
      const warnings = warningsOf(deps, await deps.fleet.needsOfEvents(events));
      return ok({ ...view(deps, isDone ? outcome.result : deps.fleet.settings()), warnings });
    },
  });
}

/** The schema of the answer drops other fields. */
function view({ fleet }: Pick<RestDeps, 'fleet'>, state: SettingsState): z.output<typeof settings> {
  const nameOf = (id: string | null): string | null =>
    id === null ? null : (fleet.nameOf(rolloutPolicyKey.type, id) ?? id);
  return {
    ...state,
    rollout_policy: nameOf(state.rollout_policy),
    upgrade_rollout_policy: nameOf(state.upgrade_rollout_policy),
    nodes: Object.entries(state.nodes).map(([node_id, node]) => ({ node_id, ...node })),
  };
}

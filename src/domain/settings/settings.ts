/**
 * The connectivity settings of an installation: multiplexing of nodes, and intervals for agents. Values, event, command,
 * and the rules of the values, by which REST checks bodies too. Implements `docs/contract/rest.md#connectivity-settings`
 * and `docs/contract/configuration.md#configuration`.
 */
import type { Changes } from '../resource/change.js';
import type { FleetView, SingletonKey } from '../resource/fleet-view.js';
import type { IfMatch } from '../resource/refusal.js';
import { fieldsOf, type PartialUpdate } from '../resource/lifecycle.js';

/** A node's own multiplexing, deleted and restored with the node. */
export interface MultiplexOverride {
  readonly multiplex: boolean;
  /** null inherits the global port. */
  readonly multiplex_port: number | null;
}

/** The fields that apply to every node. */
export interface GlobalSettings {
  readonly multiplex: boolean;
  readonly multiplex_port: number | null;
  readonly heartbeat_interval_secs: number;
  readonly metrics_interval_secs: number;
  /** null stands for three heartbeats. */
  readonly offline_after_secs: number | null;
  /** The id of the rollout policy for commands that name none; null for no rollout. */
  readonly rollout_policy: string | null;
  /** Likewise for a raised compiler version. */
  readonly upgrade_rollout_policy: string | null;
}

/** The fields that name a rollout policy. */
export const policyFields = ['rollout_policy', 'upgrade_rollout_policy'] as const;

export const globalFields = fieldsOf<GlobalSettings>()([
  'multiplex',
  'multiplex_port',
  'heartbeat_interval_secs',
  'metrics_interval_secs',
  'offline_after_secs',
  ...policyFields,
]);

export interface SettingsState extends GlobalSettings {
  /** 0 until something is saved. */
  readonly version: number;
  readonly updated_at: string | null;
  readonly nodes: { readonly [nodeId: string]: MultiplexOverride };
}

export type SettingsEvent = { readonly type: 'ConnectivityUpdated'; readonly data: { readonly changes: Changes } };

export type UpdateConnectivity = {
  readonly type: 'UpdateConnectivity';
  readonly ifMatch: IfMatch;
  // A policy may be given by its name.
  /** Overrides. `multiplex: null` removes that node's override; an absent port inherits the global one. */
  readonly nodes?:
    | readonly {
        readonly node_id: string;
        readonly multiplex: boolean | null;
        readonly multiplex_port?: number | null | undefined;
      }[]
    | undefined;
} & { readonly [F in keyof GlobalSettings]?: GlobalSettings[F] | undefined };

export const defaultSettings: SettingsState = {
  version: 0,
  updated_at: null,
  multiplex: false,
  multiplex_port: null,
  heartbeat_interval_secs: 10,
  metrics_interval_secs: 60,
  offline_after_secs: null,
  rollout_policy: null,
  upgrade_rollout_policy: null,
  nodes: {},
};

const settingsKey: SingletonKey<SettingsState> = { singleton: 'connectivity' };

export function settingsOf(fleet: FleetView): SettingsState {
  return fleet.singleton(settingsKey);
}

/** Seconds of silence after which a node counts as offline. */
export function offlineAfterSeconds(
  settings: Pick<SettingsState, 'heartbeat_interval_secs' | 'offline_after_secs'>,
): number {
  return settings.offline_after_secs ?? 3 * settings.heartbeat_interval_secs;
}

/** The multiplex of a node: its override, else the global one. The port is null while multiplex is off. */
export function effectiveMultiplex(
  settings: Pick<SettingsState, 'multiplex' | 'multiplex_port' | 'nodes'>,
  nodeId: string,
): MultiplexOverride {
  const override = settings.nodes[nodeId];
  const multiplex = override?.multiplex ?? settings.multiplex;
  return { multiplex, multiplex_port: multiplex ? (override?.multiplex_port ?? settings.multiplex_port) : null };
}

export const settingsRanges = {
  heartbeat_interval_secs: { min: 1, max: 3600 },
  metrics_interval_secs: { min: 5, max: 86_400 },
  /** At most a week. */
  offline_after_secs: { min: 2, max: 7 * 24 * 3600 },
} as const;

interface SettingsProblem {
  readonly field: keyof GlobalSettings;
  readonly message: string;
}

/** The problems of settings, or of the fields that an edit sends. */
export function* settingsProblems(settings: PartialUpdate<GlobalSettings>): Generator<SettingsProblem> {
  const { multiplex, multiplex_port, heartbeat_interval_secs: heartbeat, offline_after_secs: offline } = settings;
  if (multiplex === true && multiplex_port === null) {
    yield { field: 'multiplex_port', message: 'expected a port when multiplex is true' };
  }
  if (typeof offline === 'number' && heartbeat !== undefined && offline < 2 * heartbeat) {
    const message = `expected at least 2 × heartbeat_interval_secs, which is ${2 * heartbeat}`;
    yield { field: 'offline_after_secs', message };
  }
}

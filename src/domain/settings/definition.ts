/**
 * What the connectivity settings may be, seen alone: the range of each number, and rules between two fields. Not what
 * needs the fleet (`decide.ts`). The one place of these rules: REST checks bodies with it.
 * Implements `docs/contract/configuration.md#configuration` and `docs/contract/rest.md#connectivity-settings`.
 */
import type { PartialUpdate } from '../resource/lifecycle.js';
import type { GlobalSettings } from './settings.js';

export const settingsRanges = {
  heartbeat_interval_secs: { min: 1, max: 3600 },
  metrics_interval_secs: { min: 5, max: 86_400 },
  /** At most a week: a node that is silent for longer is offline by any measure. */
  offline_after_secs: { min: 2, max: 7 * 24 * 3600 },
} as const;

export interface SettingsProblem {
  readonly field: keyof GlobalSettings;
  readonly message: string;
}

/** The rules that settings break, or that an edit breaks by itself. */
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

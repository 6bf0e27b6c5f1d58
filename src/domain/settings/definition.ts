/**
 * The rules that the connectivity settings must keep by themselves: the range of each number, and rules between two
 * fields. REST checks bodies with them, `decide.ts` whole settings. Rules that need the fleet are in `decide.ts`.
 * Implements `docs/contract/configuration.md#configuration` and `docs/contract/rest.md#connectivity-settings`.
 */
import type { PartialUpdate } from '../resource/lifecycle.js';
import type { GlobalSettings } from './settings.js';

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

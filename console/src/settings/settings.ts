/** Queries and commands of the connectivity settings. */
import { api, doneOf, type Done, type Schemas } from '../shared/api/client.js';
import type { Save } from '../shared/api/crud.js';

export type Settings = Schemas['ConnectivitySettings'];
export type Override = Settings['nodes'][number];
type Changes = Schemas['ConnectivitySettingsChanges'];

export const updateSettings = ({ values: body, headers: header }: Save<Changes>): Promise<Done<Settings>> =>
  doneOf(api.PUT('/api/settings/connectivity', { params: { header }, body }));

/** The entries that turn the former overrides into the new ones; null removes one. */
export function overrideChanges(before: readonly Override[], now: readonly Override[]): NonNullable<Changes['nodes']> {
  const gone = before.filter(({ node_id: id }) => !now.some((one) => one.node_id === id));
  return [...now, ...gone.map(({ node_id }) => ({ node_id, multiplex: null }))];
}

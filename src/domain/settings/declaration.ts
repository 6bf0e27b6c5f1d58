/** The declaration of the connectivity settings. */
import { eventAudit, fieldChanges } from '../resource/audit-change.js';
import type { Singleton } from '../resource/declaration.js';
import { updateConnectivity } from './decide.js';
import { evolveSettings, nodesInReach, withoutNode } from './evolve.js';
import type { SettingsEvent, SettingsState, UpdateConnectivity } from './settings.js';
import { defaultSettings, effectiveMultiplex, settingsOf } from './settings.js';

export const connectivity: Singleton<'connectivity', 'settings', SettingsState, SettingsEvent, UpdateConnectivity> = {
  type: 'connectivity',
  id: 'connectivity',
  checkpointField: 'settings',
  initial: defaultSettings,
  decide: { UpdateConnectivity: updateConnectivity },
  evolve: evolveSettings,
  withoutNode,
  events: {
    ConnectivityUpdated: {
      schemaVersion: 1,
      audit: ({ data }) => eventAudit('update', fieldChanges(data.changes)),
      touches(fleet, event, context) {
        const before = settingsOf(fleet);
        const after = evolveSettings(before, event, context);
        return [...nodesInReach(event.data.changes, fleet.ids('node'))].filter((id) => {
          const [from, to] = [effectiveMultiplex(before, id), effectiveMultiplex(after, id)];
          return from.multiplex !== to.multiplex || from.multiplex_port !== to.multiplex_port;
        });
      },
    },
  },
};

/** The declaration of the connectivity settings. */
import { eventAudit, fieldChanges } from '../resource/audit-change.js';
import type { Singleton } from '../resource/declaration.js';
import type { Changes } from '../resource/change.js';
import { earlierValues, type Undo } from '../resource/undo.js';
import { updateConnectivity } from './decide.js';
import { evolveSettings, nodesInReach, overriddenNode } from './evolve.js';
import {
  defaultSettings,
  effectiveMultiplex,
  settingsOf,
  type GlobalSettings,
  type MultiplexOverride,
  type SettingsEvent,
  type SettingsState,
  type UpdateConnectivity,
} from './settings.js';

/** Each node's override is a field of its own. */
function undoUpdate(changes: Changes): Undo {
  return {
    kind: 'change',
    changes,
    now(fleet) {
      const settings = settingsOf(fleet);
      return (field) => {
        const nodeId = overriddenNode(field);
        if (nodeId === undefined) return settings[field as keyof GlobalSettings];
        const override = settings.nodes[nodeId];
        return override === undefined ? null : { ...override };
      };
    },
    command() {
      const earlier = Object.entries(earlierValues(changes));
      const nodes = earlier.flatMap(([field, value]) => {
        const node_id = overriddenNode(field);
        const override = value as MultiplexOverride | null;
        return node_id === undefined ? [] : [{ node_id, ...(override ?? { multiplex: null }) }];
      });
      const globals = earlier.filter(([field]) => overriddenNode(field) === undefined);
      return { ...Object.fromEntries(globals), nodes, type: 'UpdateConnectivity', ifMatch: undefined };
    },
  };
}

export const connectivity: Singleton<'connectivity', SettingsState, SettingsEvent, UpdateConnectivity> = {
  type: 'connectivity',
  id: 'connectivity',
  initial: defaultSettings,
  decide: { UpdateConnectivity: updateConnectivity },
  evolve: evolveSettings,
  events: {
    ConnectivityUpdated: {
      audit: ({ data }) => eventAudit('update', fieldChanges(data.changes)),
      undo: ({ data }) => undoUpdate(data.changes),
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

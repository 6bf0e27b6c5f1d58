/** The fold of a chain's events, for the fleet and for the read model. */
import { unreachable } from '../../kernel/errors.js';
import { withChanges } from '../resource/change.js';
import type { EventContext } from '../resource/declaration.js';
import { firstVersion, nextVersion, restoredVersion } from '../resource/meta.js';
import type { ChainEvent, ChainState } from './chain.js';

/**
 * The chain after one event; undefined once deleted. Ignores an event for a chain that does not exist, and the creation
 * or restoring of one that does.
 * @param context its `commandId` becomes the id of a deployment
 */
export function evolveChain(
  state: ChainState | undefined,
  event: ChainEvent,
  context: EventContext,
): ChainState | undefined {
  const { at, commandId } = context;
  if (event.type === 'ChainCreated') {
    if (state !== undefined) return state;
    const { chain_id, ...fields } = event.data;
    return { ...fields, ...firstVersion(chain_id, at), deployed: null };
  }
  if (event.type === 'ChainRestored') {
    if (state !== undefined) return state;
    const { chain_id, former, ...fields } = event.data;
    return { ...fields, ...restoredVersion(chain_id, former, at) };
  }
  if (state === undefined) return undefined;
  switch (event.type) {
    case 'ChainUpdated':
      return nextVersion(withChanges(state, event.data.changes), at);
    case 'ChainDeleted':
      return undefined;
    case 'ChainDeployed': {
      const { definition, chain_version } = event.data;
      const deployed =
        definition.to === null ? null : { ...definition.to, chain_version, at, deployment_id: commandId };
      return nextVersion({ ...state, deployed }, at);
    }
    default:
      return unreachable(event);
  }
}

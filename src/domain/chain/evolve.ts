/** Folds a chain's events into its state; pure, used by the fleet and by the read model alike. */
import { unreachable } from '../../kernel/errors.js';
import { withChanges } from '../resource/change.js';
import type { EventContext } from '../resource/declaration.js';
import { born, touched } from '../resource/meta.js';
import type { ChainEvent, ChainState } from './chain.js';

/** The chain after one event; undefined once deleted. The id of the command becomes the deployment's id. */
export function evolveChain(
  state: ChainState | undefined,
  event: ChainEvent,
  { at, commandId }: EventContext,
): ChainState | undefined {
  if (event.type === 'ChainCreated') {
    const { chain_id, ...fields } = event.data;
    return { ...fields, ...born(chain_id, at), deployed: null };
  }
  if (state === undefined) return undefined;
  switch (event.type) {
    case 'ChainUpdated':
      return touched(withChanges(state, event.data.changes), at);
    case 'ChainDeleted':
      return undefined;
    case 'ChainDeployed': {
      const { definition, chain_version } = event.data;
      const deployed =
        definition.to === null ? null : { ...definition.to, chain_version, at, deployment_id: commandId };
      return touched({ ...state, deployed }, at);
    }
    default:
      return unreachable(event);
  }
}

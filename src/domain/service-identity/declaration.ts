/**
 * The rotation of the service's identity key: a second one is made, then the old one is retired. Private halves arrive
 * sealed (`src/commands/node-psks.ts`). Implements `docs/contract/rollouts.md#guided-rotation`.
 */
import { firstOf } from '../../kernel/compare-text.js';
import { unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import { ok } from '../../kernel/result.js';
import { hasEnded, joinTokenKey, type JoinTokenEvent } from '../join-token/join-token.js';
import { nodeKey } from '../node/node.js';
import { addedFields, eventAudit, masked } from '../resource/audit-change.js';
import { onRecord, type EventContext, type EventDeclarations } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { sortKey } from '../resource/meta.js';
import { refuse, type Decision } from '../resource/refusal.js';
import { servedKeys, type ServedKeys, type ServiceKey } from '../service/served-keys.js';

type IdentityEvent =
  | { readonly type: 'ServiceIdentityRotated'; readonly data: Omit<ServiceKey, 'since'> }
  /** The second key is the only one from now on. */
  | {
      readonly type: 'ServiceIdentityRetired';
      readonly data: {
        /** The public halves of the key that ended and of the one that stays, base64url. */
        readonly retired: string;
        readonly static_public: string;
        /** Some nodes still needed the old one. */
        readonly forced: boolean;
      };
    };

type IdentityCommand =
  | ({ readonly type: 'RotateServiceIdentity' } & Omit<ServiceKey, 'since'>)
  | {
      readonly type: 'RetireServiceIdentity';
      readonly force: boolean;
      /** Milliseconds since the epoch. */
      readonly now: number;
      /** The public half of the installation's first key, base64url. */
      readonly first: string;
    };

type Of<T extends IdentityCommand['type']> = Extract<IdentityCommand, { readonly type: T }>;

function rotate(fleet: FleetView, { type: _, ...key }: Of<'RotateServiceIdentity'>): Decision<IdentityEvent> {
  const { next } = servedKeys(fleet);
  if (next === null) return ok([{ type: 'ServiceIdentityRotated', data: key }]);
  return refuse('conflict', `the service has a second identity since ${next.since}: retire the old one first`);
}

function retire(
  fleet: FleetView,
  { force, now, first }: Of<'RetireServiceIdentity'>,
): Decision<IdentityEvent | JoinTokenEvent> {
  const { current, next } = servedKeys(fleet);
  if (next === null) return refuse('conflict', 'the service has one identity: rotate it first');
  const { static_public } = next;
  const left = nodesLeft(fleet, static_public);
  if (left.length > 0 && !force) return refuse('conflict', sentenceOf(left));
  const ended = [...fleet.ids(joinTokenKey.type)].filter((id) => {
    const token = fleet.get(joinTokenKey, id);
    return token !== undefined && token.service_public !== static_public && !hasEnded(token, now);
  });
  const data = { retired: current?.static_public ?? first, static_public, forced: left.length > 0 };
  return ok([
    { type: 'ServiceIdentityRetired', data },
    ...ended.map((join_token_id) => ({ type: 'JoinTokenEnded', data: { join_token_id } }) as const),
  ]);
}

/** The names of the nodes whose PSK carries another key. A candidate that no agent has proven does not count. */
function nodesLeft(fleet: FleetView, staticPublic: string): readonly string[] {
  const names: string[] = [];
  for (const id of fleet.ids(nodeKey.type)) {
    const node = fleet.get(nodeKey, id);
    if (node !== undefined && node.psk !== null && node.psk.service_public !== staticPublic) names.push(node.name);
  }
  return names;
}

function sentenceOf(names: readonly string[]): string {
  const shown = firstOf(names, limits.rest.nodesNamed, sortKey).map((name) => `"${name}"`);
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : '';
  const many = names.length === 1 ? '1 node has' : `${names.length} nodes have`;
  return `${many} a PSK of the old identity: ${shown.join(', ')}${more}; give them new ones, or send force: true`;
}

function evolve(state: ServedKeys, event: IdentityEvent, { at }: EventContext): ServedKeys {
  switch (event.type) {
    case 'ServiceIdentityRotated':
      return { ...state, next: { ...event.data, since: at } };
    case 'ServiceIdentityRetired':
      return { current: state.next, next: null };
    default:
      return unreachable(event);
  }
}

const final = 'keys are not taken back';

export const serviceIdentity = {
  type: 'service',
  id: 'identity',
  initial: { current: null, next: null } as ServedKeys,
  decide: { RotateServiceIdentity: rotate, RetireServiceIdentity: retire },
  evolve,
  events: {
    ServiceIdentityRotated: {
      ...onRecord,
      audit: ({ data }) =>
        eventAudit('rotate', addedFields({ 'next.public_key': data.static_public, 'next.private_key': masked }), final),
    },
    ServiceIdentityRetired: {
      ...onRecord,
      audit: ({ data }) =>
        eventAudit(
          'retire',
          [
            { path: 'current.public_key', before: data.retired, after: data.static_public },
            ...(data.forced ? addedFields({ force: true }) : []),
          ],
          final,
        ),
    },
  } satisfies EventDeclarations<IdentityEvent>,
} as const;

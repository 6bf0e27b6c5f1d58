/**
 * The declaration of join tokens, with the decisions to make, use and delete one. Verifiers and PSKs arrive sealed
 * (`src/commands/join-tokens.ts`). Implements `docs/contract/joining.md#join-tokens`.
 */
import { unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import { err, ok } from '../../kernel/result.js';
import { sortedLabels } from '../node/labels.js';
import { node } from '../node/declaration.js';
import { issued } from '../node/psk.js';
import { nodeKey, type NodeEvent } from '../node/node.js';
import { addedFields, eventAudit, masked, removedFields } from '../resource/audit-change.js';
import { onRecord, type EventContext, type EventDeclarations } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { pick } from '../resource/lifecycle.js';
import { firstVersion, nameKey, nextVersion } from '../resource/meta.js';
import { faultOfName } from '../resource/name.js';
import { refuse, type Decision } from '../resource/refusal.js';
import { existing } from '../resource/rules.js';
import { isNewestKey, isServedKey, servedKeys } from '../service/served-keys.js';
import {
  hasEnded,
  hasExpired,
  isForgotten,
  joinTokenFields,
  joinTokenKey,
  type JoinTokenCommand,
  type JoinTokenEvent,
  type JoinTokenState,
} from './join-token.js';
import { faultOfPrefix, joinedName } from './node-name.js';

type Of<T extends JoinTokenCommand['type']> = Extract<JoinTokenCommand, { readonly type: T }>;

const bounds = limits.fleet.joinTokens;

function* tokensOf(fleet: FleetView): Generator<JoinTokenState> {
  for (const id of fleet.ids(joinTokenKey.type)) {
    const token = fleet.get(joinTokenKey, id);
    if (token !== undefined) yield token;
  }
}

function create(fleet: FleetView, command: Of<'CreateJoinToken'>): Decision<JoinTokenEvent> {
  const { type: _, id, now, ...made } = command;
  if (!isNewestKey(servedKeys(fleet), made.service_public)) {
    return refuse('precondition_failed', 'the identity of the service was rotated meanwhile');
  }
  const fault = faultOfName(made.name);
  if (fault !== undefined) return refuse('invalid_request', `name: ${fault}`);
  const unfit = made.name_prefix === null ? undefined : faultOfPrefix(made.name_prefix);
  if (unfit !== undefined) return refuse('invalid_request', `name_prefix: ${unfit}`);
  const tokens = [...tokensOf(fleet)];
  const live = tokens.filter((token) => !hasEnded(token, now));
  const same = live.find(({ name }) => nameKey(name) === nameKey(made.name));
  if (same !== undefined) {
    const message = `name: "${made.name}" is already the name of join_token ${same.id}; expected a unique name`;
    return refuse('conflict', message);
  }
  if (live.length >= bounds.live) {
    return refuse(
      'conflict',
      `there are ${live.length} join tokens; expected at most ${bounds.live}: delete one first`,
    );
  }
  const forgotten = tokens.filter((token) => hasExpired(token, now) && isForgotten(token, now));
  return ok([
    { type: 'JoinTokenCreated', data: { join_token_id: id, ...made } },
    ...forgotten
      .slice(0, bounds.forgottenAtOnce)
      .map((token) => ({ type: 'JoinTokenForgotten', data: { join_token_id: token.id } }) as const),
  ]);
}

function remove(fleet: FleetView, command: Of<'DeleteJoinToken'>): Decision<JoinTokenEvent> {
  const token = existing(fleet, joinTokenKey, command);
  if (!token.ok) return err(token.error);
  return ok([{ type: 'JoinTokenDeleted', data: { join_token_id: command.id, ...pick(token.value, joinTokenFields) } }]);
}

/** Refusals: `not_found` if the token authenticates nobody, `precondition_failed` to have its uses read again. */
function join(fleet: FleetView, command: Of<'JoinNode'>): Decision<NodeEvent | JoinTokenEvent> {
  const { id, node_id, request_id, psk } = command;
  const token = fleet.get(joinTokenKey, id);
  const keys = servedKeys(fleet);
  if (token === undefined || hasExpired(token, command.now) || !isServedKey(keys, token.service_public)) {
    return refuse('not_found', 'the join token was deleted or has expired');
  }
  const before = token.joins.find((use) => use.request_id === request_id);
  if (before !== undefined) {
    if (before.node_id !== node_id) return refuse('precondition_failed', 'the request was carried out meanwhile');
    // A restored node has no PSK: it waits for a person.
    if ((fleet.get(nodeKey, node_id)?.psk ?? null) === null) {
      return refuse('conflict', `the node ${node_id}, which this request made, was deleted`);
    }
    return issued(fleet, psk, { type: 'NodePskIssued', data: { node_id, ...psk } });
  }
  if (token.joins.length >= token.uses) {
    return refuse('conflict', `the join token "${token.name}" is used up: it has made ${token.uses} nodes`);
  }
  const name = joinedName(fleet, token.name_prefix, command.name);
  const fields = { name, description: null, address: null, labels: token.labels };
  const created = node.decide.CreateNode(fleet, { type: 'CreateNode', id: node_id, ...fields, psk });
  if (!created.ok) return created;
  const use = { join_token_id: id, request_id, node_id, node_name: name };
  return ok([...created.value, { type: 'JoinTokenUsed', data: use }]);
}

function evolve(
  state: JoinTokenState | undefined,
  event: JoinTokenEvent,
  { at }: EventContext,
): JoinTokenState | undefined {
  switch (event.type) {
    case 'JoinTokenCreated': {
      if (state !== undefined) return state;
      const { join_token_id, ...made } = event.data;
      return { ...made, labels: sortedLabels(made.labels), ...firstVersion(join_token_id, at), joins: [] };
    }
    case 'JoinTokenUsed': {
      if (state === undefined) return undefined;
      const { join_token_id: _, ...use } = event.data;
      return nextVersion({ ...state, joins: [...state.joins, { ...use, at }] }, at);
    }
    case 'JoinTokenEnded':
      return state === undefined ? undefined : nextVersion({ ...state, expires_at: at }, at);
    case 'JoinTokenDeleted':
    case 'JoinTokenForgotten':
      return undefined;
    default:
      return unreachable(event);
  }
}

export const joinToken = {
  type: 'join_token',
  noun: 'JoinToken',
  singular: 'join_token',
  fields: joinTokenFields,
  sealed: ['verifier'],
  reusesNames: true,
  indexed: null,
  compiled: null,
  decide: { CreateJoinToken: create, DeleteJoinToken: remove, JoinNode: join },
  evolve,
  events: {
    JoinTokenCreated: {
      ...onRecord,
      audit: ({ data }) =>
        eventAudit(
          'create',
          addedFields({ ...pick(data, joinTokenFields), token: masked }),
          'delete the join token instead',
        ),
    },
    // The entry is the node's, and names the token.
    JoinTokenUsed: { ...onRecord, audit: () => eventAudit('update', []) },
    // The entry is the identity's, and names the token.
    JoinTokenEnded: { ...onRecord, audit: () => eventAudit('update', []) },
    JoinTokenDeleted: {
      ...onRecord,
      audit: ({ data }) =>
        eventAudit(
          'delete',
          removedFields(pick(data, joinTokenFields)),
          'its text is not stored; create another join token',
        ),
    },
    JoinTokenForgotten: { ...onRecord, audit: () => eventAudit('delete', []) },
  } satisfies EventDeclarations<JoinTokenEvent>,
} as const;

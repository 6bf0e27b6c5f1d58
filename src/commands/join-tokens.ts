/**
 * Handlers of join tokens: make and seal the token, delete one and wait until every instance refuses it, and let a machine join.
 * The rules are in `domain/join-token`. Implements `docs/contract/joining.md#join-tokens`.
 */
import type { Fleet } from '../domain/fleet/fleet.js';
import type { FleetCommand } from '../domain/fleet/resources.js';
import { joinTokenKey } from '../domain/join-token/join-token.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import { agentsStream } from '../kernel/event.js';
import { joinIdOf, type Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import { issueJoinToken, sealVerifier } from '../security/psk.js';
import { lastRevision, type EventStore } from '../storage/event-store.js';
import type { CommandHandlers } from './handlers-port.js';
import { issuePsk, underNewestKey, type PskMaker } from './node-psks.js';
import type { CommandOutcome, Gateway } from './port.js';
import { present } from './resources.js';
import { tuning } from './tuning.js';

interface Options extends PskMaker {
  readonly gateway: Gateway<Fleet, FleetCommand>;
  readonly clock: Pick<Clock, 'now'>;
  readonly ids: Ids;
}

export interface JoinTokenHandlerOptions extends Options {
  readonly logger: Logger;
  /** True once every session of an id that began before a revision is closed on every instance; false after a timeout. */
  sessionsEnded(nodeId: string, timeoutMs: number, revision?: number): Promise<boolean>;
}

const hourMs = 3_600_000;
/** How many tokens of one person are deleted at a time. */
const deletedAtOnce = 50;

export function createJoinTokenHandlers(options: JoinTokenHandlerOptions): CommandHandlers['joinTokens'] {
  const { gateway, keyring, serviceKeys, clock, ids, logger } = options;

  /** Waits until every live instance refuses a deleted token. */
  async function refused(id: string, outcome: CommandOutcome<void>): Promise<CommandOutcome<void>> {
    const revision = outcome.kind === 'done' ? outcome.events.at(-1)?.revision : undefined;
    const ended = await options.sessionsEnded(joinIdOf(id), limits.agent.sessionsEndedWaitMs, revision);
    if (!ended) logger.warn({ join_token_id: id }, 'not every instance has said in time that it refuses a join token');
    return outcome;
  }

  const handlers: CommandHandlers['joinTokens'] = {
    create(context, { expires_in_hours: hours, ...fields }) {
      const [id, now] = [ids.next(), clock.now()];
      const created_by = { id: context.actor.id ?? '', name: context.actor.name };
      return underNewestKey(() => {
        const { publicKey, named } = serviceKeys.newest();
        const { token, verifier } = issueJoinToken(id, publicKey);
        const sealed = sealVerifier(keyring, verifier, id);
        verifier.psk.fill(0);
        const made = { ...fields, expires_at: timestamp(now + hours * hourMs), created_by, verifier: sealed, ...named };
        return gateway.execute({ type: 'CreateJoinToken', id, now, ...made }, context, (fleet) => ({
          joinToken: present(fleet.get(joinTokenKey, id)),
          token,
        }));
      });
    },
    remove: async (context, id, ifMatch) =>
      refused(id, await gateway.execute({ type: 'DeleteJoinToken', id, ifMatch }, context, () => undefined)),
    removeThoseOf: (context, userId) => deleteThoseOf(gateway, userId, (id) => handlers.remove(context, id, undefined)),
  };
  return handlers;
}

/** Deletes the join tokens that a user has made. @returns how many */
export async function deleteThoseOf(
  gateway: Pick<Options['gateway'], 'read'>,
  userId: string,
  remove: (id: string) => Promise<unknown>,
): Promise<number> {
  const own = await gateway.read((fleet) =>
    [...fleet.tables.join_token.values()].flatMap(({ id, created_by }) => (created_by.id === userId ? [id] : [])),
  );
  let deleted = 0;
  const removeOne = async (id: string): Promise<void> => {
    try {
      await remove(id);
      deleted += 1;
    } catch (error) {
      // Somebody else deleted it meanwhile.
      if (!(error instanceof ServiceError) || error.code !== 'not_found') throw error;
    }
  };
  for (let from = 0; from < own.length; from += deletedAtOnce) {
    await Promise.all(own.slice(from, from + deletedAtOnce).map(removeOne));
  }
  return deleted;
}

export interface JoinRequested {
  readonly tokenId: string;
  /** 16 bytes, lower-case hex: the same when the machine repeats the request. */
  readonly requestId: string;
  /** The name that the machine gives itself. */
  readonly name: string;
  /** Becomes the request id of the command. */
  readonly sessionId: string;
}

export type JoinAnswer =
  | { readonly kind: 'granted'; readonly nodeId: string; readonly nodeName: string; readonly controlPsk: string }
  /** Refused for good; `message` is a sentence that says why. */
  | { readonly kind: 'refused'; readonly message: string };

export interface JoinOptions extends Options {
  readonly eventStore: Pick<EventStore, 'read'>;
  /** Whether the agent of a node has connected, as far as this instance knows. */
  hasConnected(nodeId: string): boolean;
  /** True once this instance knows an event of a stream of facts, false after `timeoutMs`. */
  holdsFacts(stream: string, revision: number, timeoutMs: number): Promise<boolean>;
}

/** @returns a function that makes a request's node, or gives it another PSK; rejects when the machine may try again */
export function createJoin(options: JoinOptions): (request: JoinRequested) => Promise<JoinAnswer> {
  const { gateway, clock, ids, eventStore } = options;

  /** Whether the agent of a node has ever connected, on any instance. @throws ServiceError `unavailable` */
  async function hasConnected(nodeId: string): Promise<boolean> {
    const stream = agentsStream(nodeId);
    const head = (await lastRevision(eventStore, stream)) ?? -1;
    if (await options.holdsFacts(stream, head, limits.rest.projectionWaitMs)) return options.hasConnected(nodeId);
    throw new ServiceError('unavailable', 'the facts about agents are behind the log; nothing was written');
  }

  async function attempt({ tokenId: id, requestId: request_id, name, sessionId }: JoinRequested): Promise<JoinAnswer> {
    const { tokenName, before } = await gateway.read((fleet) => {
      const token = fleet.get(joinTokenKey, id);
      return { tokenName: token?.name ?? '', before: token?.joins.find((use) => use.request_id === request_id) };
    });
    if (before !== undefined && (await hasConnected(before.node_id))) {
      return { kind: 'refused', message: `the node ${before.node_id}, which this request made, has connected since` };
    }
    const nodeId = before?.node_id ?? ids.next();
    const { controlPsk, psk } = issuePsk(options, nodeId);
    const context = {
      actor: { type: 'system', id: null, name: 'join' },
      token: { id, name: tokenName },
      requestId: sessionId,
    } as const;
    const command = { type: 'JoinNode', id, node_id: nodeId, request_id, name, psk, now: clock.now() } as const;
    const outcome = await gateway.execute(command, context, (fleet) => present(fleet.nameOf('node', nodeId)));
    if (outcome.kind !== 'done') throw new Error('a join has no idempotency key');
    return { kind: 'granted', nodeId, nodeName: outcome.result, controlPsk };
  }

  return async (request) => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await attempt(request);
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        // The same request won on another connection, or the identity was rotated.
        if (error.code === 'precondition_failed' && tries < tuning.joinAttempts) continue;
        if (error.code !== 'not_found' && error.code !== 'conflict') throw error;
        return { kind: 'refused', message: error.message };
      }
    }
  };
}

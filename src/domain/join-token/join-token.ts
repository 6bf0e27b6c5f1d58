/**
 * A join token: lets machines become nodes by themselves. State, events and commands; `declaration.ts` decides. The log
 * holds the verifier of its secret, sealed like a node's. Implements `docs/contract/joining.md#join-tokens`.
 */
import { limits } from '../../kernel/limits.js';
import type { IssuedPsk } from '../node/node.js';
import type { Labels } from '../node/labels.js';
import type { ResourceKey } from '../resource/fleet-view.js';
import { fieldsOf } from '../resource/lifecycle.js';
import type { ResourceMeta } from '../resource/meta.js';
import type { IfMatch } from '../resource/refusal.js';
import type { SealedSecret } from '../secret/sealed.js';

export interface JoinTokenDefinition {
  readonly name: string;
  /** The maximum number of nodes that it makes. */
  readonly uses: number;
  /** RFC 3339. */
  readonly expires_at: string;
  /** Given to each node. */
  readonly labels: Labels;
  /** The prefix of each node's name; null for none. */
  readonly name_prefix: string | null;
}

export const joinTokenFields = fieldsOf<JoinTokenDefinition>()(['name', 'uses', 'expires_at', 'labels', 'name_prefix']);

interface Made {
  /** The person who made it. */
  readonly created_by: { readonly id: string; readonly name: string };
  /** Like a node's, but sealed with the token's id; null in read models. */
  readonly verifier: SealedSecret | null;
  /** The identity key that it carries; see `IssuedPsk`. */
  readonly service_public?: string | undefined;
}

interface Use {
  /** 16 bytes, lower-case hex. The machine repeats it when the answer was lost. */
  readonly request_id: string;
  readonly node_id: string;
  /** Its name at that time. */
  readonly node_name: string;
}

export interface JoinTokenState extends ResourceMeta, JoinTokenDefinition, Made {
  /** Oldest first. The revert of a node does not give its use back. */
  readonly joins: readonly (Use & { readonly at: string })[];
}

interface OfToken {
  readonly join_token_id: string;
}

export type JoinTokenEvent =
  | { readonly type: 'JoinTokenCreated'; readonly data: OfToken & JoinTokenDefinition & Made }
  /** In the command that creates the node. */
  | { readonly type: 'JoinTokenUsed'; readonly data: OfToken & Use }
  | { readonly type: 'JoinTokenDeleted'; readonly data: OfToken & JoinTokenDefinition }
  /** The identity key that it carries is retired, in the command that retires it. */
  | { readonly type: 'JoinTokenEnded'; readonly data: OfToken }
  /** It ended so long ago that nobody sees it; in the command that creates another one. */
  | { readonly type: 'JoinTokenForgotten'; readonly data: OfToken };

interface AtTime {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export type JoinTokenCommand =
  | ({ readonly type: 'CreateJoinToken' } & AtTime & JoinTokenDefinition & Made)
  | { readonly type: 'DeleteJoinToken'; readonly id: string; readonly ifMatch: IfMatch }
  /** Makes a node, its PSK and a use together, or issues another PSK for the node that the same request made. */
  | ({
      readonly type: 'JoinNode';
      /** The name that the machine gives itself. */
      readonly name: string;
      readonly psk: IssuedPsk;
    } & AtTime &
      Omit<Use, 'node_name'>);

export const joinTokenKey: ResourceKey<JoinTokenState> = { type: 'join_token' };

/** Whether it no longer authenticates anybody. @param now milliseconds since the epoch */
export function hasExpired({ expires_at }: Pick<JoinTokenState, 'expires_at'>, now: number): boolean {
  return Date.parse(expires_at) <= now;
}

type Ending = Pick<JoinTokenState, 'expires_at' | 'uses' | 'joins'>;

/** Whether it makes no more nodes. A used-up one still answers repeats until it expires. @param now as above */
export function hasEnded(token: Ending, now: number): boolean {
  return token.joins.length >= token.uses || hasExpired(token, now);
}

/** Whether it ended so long ago that no list shows it. @param now as above */
export function isForgotten(token: Ending, now: number): boolean {
  const since = now - limits.fleet.joinTokens.endedListedMs;
  const lastUse = token.joins.length >= token.uses ? token.joins.at(-1) : undefined;
  return hasExpired(token, since) || (lastUse !== undefined && Date.parse(lastUse.at) <= since);
}

/**
 * The fold of `svc-service`: identity, signing key of tokens, newest keyring, and head of the log chain.
 * Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 */
import { unreachable } from '../../kernel/errors.js';
import { lastEvent, type RecordedCommand } from '../../kernel/event.js';
import { namesHeads } from '../log-chain/heads.js';
import { emptyChain, type ChainHead } from '../log-chain/links.js';
import { serviceEvent, type ServiceEvent, type ServiceKeyEvent } from './identity.js';

type DataOf<T extends ServiceEvent['type']> = Extract<ServiceEvent, { readonly type: T }>['data'];

export interface ServiceState {
  /** The revision of the last event; -1 before any. */
  readonly revision: number;
  readonly position: number;
  readonly logChain: ChainHead;
  readonly identity: DataOf<'ServiceIdentityCreated'> | undefined;
  /** When the identity was made, RFC 3339; empty before. */
  readonly since: string;
  /** The key that signs tokens. */
  readonly signingKey: ServiceKeyEvent['data'] | undefined;
  readonly keyring: DataOf<'KeyringRecorded'> | undefined;
}

export const emptyService: ServiceState = {
  revision: -1,
  position: 0,
  logChain: emptyChain,
  identity: undefined,
  since: '',
  signingKey: undefined,
  keyring: undefined,
};

/** Applies a command, which `log/upcast.ts` has read. @param logChain the head after it */
export function applyService(state: ServiceState, command: RecordedCommand, logChain: ChainHead): ServiceState {
  const { revision, position } = lastEvent(command);
  const next = { ...state, revision, position, logChain };
  return namesHeads(command)
    ? next
    : evolve(next, serviceEvent(command.events[0]), command.events[0].metadata.occurred_at);
}

function evolve(state: ServiceState, event: ServiceEvent, at: string): ServiceState {
  switch (event.type) {
    case 'ServiceIdentityCreated':
      return { ...state, identity: event.data, since: at, signingKey: event.data };
    case 'TokenSigningKeyReplaced':
      return { ...state, signingKey: event.data };
    case 'KeyringRecorded':
      return { ...state, keyring: event.data };
    default:
      return unreachable(event);
  }
}

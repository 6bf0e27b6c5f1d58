/**
 * The log chain as one instance uses it: it links the commands that it appends, checks the link of every command that
 * it folds, and remembers the first one that does not match. From then on the instance is read-only and not ready. The
 * rules of links are in `src/domain/log-chain/links.ts`. Implements `docs/log-chain.md`.
 */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import {
  BrokenChainError,
  followChain,
  linkCommand,
  type ChainBreak,
  type ChainHead,
  type ChainMac,
  type Linked,
} from '../../domain/log-chain/links.js';
import type { ProposedEvent, RecordedCommand } from '../../kernel/event.js';
import type { KeyringContent } from '../keyring.js';

/** The key of an installation's log chains. A message to a worker thread can carry it, because it copies only a handle. */
export interface LogChainKey {
  readonly installationId: string;
  readonly key: KeyObject;
}

export interface LogChain {
  /** Links a command before it is appended. */
  link(head: ChainHead, stream: string, events: readonly ProposedEvent[]): Linked;
  /**
   * Checks a command as the log stores it.
   * @returns the head after it
   * @throws BrokenChainError
   */
  follow(head: ChainHead, command: RecordedCommand): ChainHead;
  /** The first command that did not match; undefined if every command did. */
  broken(): ChainBreak | undefined;
  /** Records a break that another thread of this process found. */
  found(at: ChainBreak): void;
  /** For such a thread. */
  readonly key: LogChainKey;
  /** The MAC of a text that this instance stores outside the log, such as a fold checkpoint. */
  seal(text: string): string;
}

export function logChainKeyOf({ installationId, logChain }: KeyringContent): LogChainKey {
  return { installationId, key: createSecretKey(logChain) };
}

export function createLogChain(key: LogChainKey): LogChain {
  const mac: ChainMac = {
    installationId: key.installationId,
    macOf: (text) => createHmac('sha256', key.key).update(text).digest('base64url'),
  };
  let broken: ChainBreak | undefined;

  return {
    link: (head, stream, events) => linkCommand(head, stream, events, mac),
    follow(head, command) {
      try {
        return followChain(head, command, mac);
      } catch (error) {
        if (error instanceof BrokenChainError) broken ??= error.at;
        throw error;
      }
    },
    broken: () => broken,
    found(at) {
      broken ??= at;
    },
    key,
    seal: (text) => mac.macOf(JSON.stringify(['svc-log-chain-seal-1', key.installationId, text])),
  };
}

/**
 * The log chain as one instance uses it: it links the commands that it appends, checks the link of every command that it
 * folds, and remembers the first one that does not fit. From then on the instance is read-only and not ready. The rules of a
 * link are in `src/domain/log-chain/links.ts`. Implements `docs/log-chain.md`.
 */
import type { ChainBreak, ChainHead, Linked } from '../../domain/log-chain/links.js';
import { BrokenChainError, followChain, linkCommand } from '../../domain/log-chain/links.js';
import type { ProposedEvent, RecordedCommand } from '../../kernel/event.js';
import type { LogChainKeys, MacKeys } from './keys.js';

export interface LogChain {
  /** The id of the key of new links. The start takes over a chain that was made under another key. */
  readonly keyId: string;
  /** Links a command that is about to be appended. */
  link(head: ChainHead, stream: string, events: readonly ProposedEvent[]): Linked;
  /**
   * Checks a command as the log stores it.
   * @returns the head after it
   * @throws BrokenChainError
   */
  follow(head: ChainHead, command: RecordedCommand): ChainHead;
  /** The first command that did not fit; undefined if every command did. */
  broken(): ChainBreak | undefined;
  /** Records a break that another thread of this process found. */
  found(at: ChainBreak): void;
  /** The MAC keys, for such a thread. */
  macKeys(): MacKeys;
  /** The MAC of a text that this instance stores outside the log, such as a fold checkpoint. */
  seal(text: string): string;
}

export function createLogChain({
  current,
  macOf,
  macKeys,
}: Pick<LogChainKeys, 'current' | 'macOf' | 'macKeys'>): LogChain {
  let broken: ChainBreak | undefined;

  return {
    keyId: current,
    link: (head, stream, events) => linkCommand(head, stream, events, macOf),
    follow(head, command) {
      try {
        return followChain(head, command, macOf);
      } catch (error) {
        if (error instanceof BrokenChainError) broken ??= error.at;
        throw error;
      }
    },
    broken: () => broken,
    found(at) {
      broken ??= at;
    },
    macKeys,
    seal(text) {
      const mac = macOf(current, JSON.stringify(['svc-log-chain-seal-1', text]));
      if (mac === undefined) throw new Error('the key of the log chain is not known');
      return mac;
    },
  };
}

/** The head of a log chain. Operators print it, keep it elsewhere, and later check that the log still contains it. */
export interface LogHead {
  readonly stream: string;
  /** Revision of the last event. */
  readonly revision: number;
  /** MAC of the last command, base64url. */
  readonly mac: string;
}

/** The text form of a head: `stream@revision:mac`. */
export const headText = ({ stream, revision, mac }: LogHead): string => `${stream}@${revision}:${mac}`;

/** Reads the text form of a head; undefined for any other text. */
export function parseHead(text: string): LogHead | undefined {
  const [, stream, revision, mac] = /^([a-z-]+)@(\d{1,15}):([A-Za-z0-9_-]{43})$/.exec(text.trim()) ?? [];
  if (stream === undefined || revision === undefined || mac === undefined) return undefined;
  return { stream, revision: Number(revision), mac };
}

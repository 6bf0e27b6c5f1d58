/**
 * The log chain as one instance sees it: makes the links of its commands, checks those of every command that its folds
 * read, and remembers the first that does not fit. From then on the instance is read-only and unready. The rules of a
 * link are in `src/domain/log-chain/links.ts`. Implements `docs/log-chain.md`.
 */
import type { ChainBreak, ChainHead, Linked } from '../domain/log-chain/links.js';
import { BrokenChainError, followChain, linkCommand } from '../domain/log-chain/links.js';
import type { ProposedEvent, RecordedCommand } from '../kernel/event.js';
import type { LogChainKeys, MacKeys } from './keys.js';

export interface LogChain {
  /** The key of new chains; one under another key is taken over at the start. */
  readonly keyId: string;
  /** Links a command that is about to be appended. */
  link(head: ChainHead, stream: string, events: readonly ProposedEvent[]): Linked;
  /** Checks a command of the log as it is stored. @returns the head after it @throws BrokenChainError */
  follow(head: ChainHead, command: RecordedCommand): ChainHead;
  /** The first command that did not fit; undefined while all did. */
  broken(): ChainBreak | undefined;
  /** Notes a command that did not fit elsewhere, in another thread of this process. */
  found(at: ChainBreak): void;
  /** The keys of the links, for such a thread. */
  macKeys(): MacKeys;
  /** Seals a text that this instance keeps beside the log, such as a fold checkpoint. */
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

/** The head of a log chain, as it is printed, kept elsewhere, and given back to be looked for. */
export interface LogHead {
  readonly stream: string;
  /** Of the last event. */
  readonly revision: number;
  /** Of the last command, base64url. */
  readonly mac: string;
}

export const headText = ({ stream, revision, mac }: LogHead): string => `${stream}@${revision}:${mac}`;

/** @returns undefined when the text is no head */
export function parseHead(text: string): LogHead | undefined {
  const [, stream, revision, mac] = /^([a-z-]+)@(\d{1,15}):([A-Za-z0-9_-]{43})$/.exec(text.trim()) ?? [];
  if (stream === undefined || revision === undefined || mac === undefined) return undefined;
  return { stream, revision: Number(revision), mac };
}

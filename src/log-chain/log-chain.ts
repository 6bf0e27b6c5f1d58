/**
 * The log chain as one instance sees it: makes the links of its commands, checks those of every command that its folds
 * read, and remembers the first that does not fit. From then on the instance is read-only and unready. Not the rules of a
 * link: those are in `src/domain/log-chain/links.ts`. Implements `docs/operations.md#the-log-chain`.
 */
import type { ChainBreak, ChainHead, Linked } from '../domain/log-chain/links.js';
import { BrokenChainError, followChain, linkCommand } from '../domain/log-chain/links.js';
import type { EventMetadata, ProposedEvent, RecordedCommand } from '../kernel/event.js';
import { lastEvent } from '../kernel/event.js';
import type { LogChainKeys, MacKeys } from './keys.js';

interface LinkedCommand {
  readonly stream: string;
  readonly events: readonly ProposedEvent[];
  readonly before: ChainHead;
  readonly after: ChainHead;
}

export interface LogChain {
  /** The key of new chains; one under another key is taken over at the start. */
  readonly keyId: string;
  /** Links a command that is about to be appended. */
  link(head: ChainHead, stream: string, events: readonly ProposedEvent[]): Linked;
  /**
   * Remembers a command that `link` has linked, with its link. A follower that is handed these very objects, and has not read
   * them from the store again, is given the head after it without another MAC.
   */
  remember(command: LinkedCommand): void;
  /** Checks a command of the log as it is stored. @returns the head after it @throws BrokenChainError */
  follow(head: ChainHead, command: RecordedCommand): ChainHead;
  /** The first command that did not fit; undefined while all did. */
  broken(): ChainBreak | undefined;
  /** Notes a command that did not fit elsewhere, in another thread of this process. */
  found(at: ChainBreak): void;
  /** The keys of the links, for such a thread. */
  macKeys(): MacKeys;
  /** A seal on a text of this instance beside the log, such as a fold checkpoint. */
  seal(text: string): string;
}

export function createLogChain({
  current,
  macOf,
  macKeys,
}: Pick<LogChainKeys, 'current' | 'macOf' | 'macKeys'>): LogChain {
  let broken: ChainBreak | undefined;
  /** The commands that this process has linked, by the metadata of their last event. */
  const linked = new WeakMap<EventMetadata, LinkedCommand>();

  return {
    keyId: current,
    link: (head, stream, events) => linkCommand(head, stream, events, macOf),
    remember(command) {
      const last = command.events.at(-1);
      if (last !== undefined) linked.set(last.metadata, command);
    },
    follow(head, command) {
      const known = linked.get(lastEvent(command).metadata);
      if (known !== undefined && isSame(known, head, command)) return known.after;
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

/** Events are immutable: the same objects at the same place in the chain are what was linked. */
function isSame({ stream, events, before }: LinkedCommand, head: ChainHead, command: RecordedCommand): boolean {
  if (before.mac !== head.mac || before.keyId !== head.keyId || stream !== command.stream) return false;
  if (events.length !== command.events.length) return false;
  return command.events.every((event, index) => {
    const other = events[index];
    const sameContent = event.data === other?.data && event.metadata === other.metadata;
    return sameContent && event.id === other.id && event.type === other.type;
  });
}

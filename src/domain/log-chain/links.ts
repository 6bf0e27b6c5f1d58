/**
 * The log chain of a stream: each command carries a MAC over the MAC of the command before it and its own events, as they
 * are stored. Computes and checks these links, given a function that makes MACs; holds no key. The events of the chain
 * itself are in `declaration.ts`. Implements `docs/log-chain.md`.
 *
 * Before the chain of a stream has begun, a plain digest takes the place of the MAC. It is stored nowhere; the first link
 * covers it, and with it all earlier commands.
 */
import type { CommandLink, ProposedEvent, RecordedCommand } from '../../kernel/event.js';
import { lastEvent } from '../../kernel/event.js';
import { canonicalJson } from '../../kernel/json.js';
import { ok } from '../../kernel/result.js';
import type { Decision } from '../resource/refusal.js';
import { asLogChainEvent } from './declaration.js';
import type { LogChainEvent } from './declaration.js';

/** The head of a stream's chain after a command. */
export interface ChainHead {
  /** The key of the next link; null before the chain has begun. */
  readonly keyId: string | null;
  /** The MAC of the last command; before the chain has begun, a digest of all commands; empty for no commands. */
  readonly mac: string;
}

export const emptyChain: ChainHead = { keyId: null, mac: '' };

/**
 * A MAC over a text, base64url; a plain digest where the key is null.
 * @returns undefined when the key is not known
 */
export type MacOf = (keyId: string | null, text: string) => string | undefined;

/** Why a command cannot stand where it stands. */
export type BreakKind =
  /** It carries no MAC, although the chain has begun. */
  | 'unlinked'
  /** It carries a MAC, although no chain has begun. */
  | 'too_early'
  /** It was written after another command than the one before it. */
  | 'misplaced'
  /** Its MAC does not fit its events. */
  | 'altered'
  /** It is linked under a key that this instance cannot have. */
  | 'unknown_key';

/** The first command that does not fit. */
export interface ChainBreak {
  readonly kind: BreakKind;
  readonly stream: string;
  /** The revision of the command's first event. */
  readonly revision: number;
  readonly commandId: string;
}

const reasons: { readonly [K in BreakKind]: string } = {
  unlinked: 'it carries no MAC',
  too_early: 'it carries a MAC, but no log chain has begun before it',
  misplaced: 'it was not written after the command before it: one was dropped, inserted or moved',
  altered: 'its MAC does not fit its events: it was altered',
  unknown_key:
    'it is linked under the key of another master key; if the master key was being replaced, run keys:rotate-master again',
};

/** One sentence, without a full stop, for readiness and the log. */
export function chainBreakText({ stream, revision, commandId, kind }: ChainBreak): string {
  return `the log chain of ${stream} breaks at revision ${revision}, command ${commandId}: ${reasons[kind]}`;
}

/** The log was tampered with, or damaged. Reading it again does not help. */
export class BrokenChainError extends Error {
  readonly at: ChainBreak;

  constructor(at: ChainBreak) {
    super(chainBreakText(at));
    this.name = 'BrokenChainError';
    this.at = at;
  }
}

/** Begins the chain of a stream, or takes it over to the key of this instance. */
export interface EnsureLogChain {
  readonly type: 'EnsureLogChain';
  readonly keyId: string;
}

export function decideLogChain(head: ChainHead, { keyId }: EnsureLogChain): Decision<LogChainEvent> {
  if (head.keyId === keyId) return ok([]);
  if (head.keyId === null) return ok([{ type: 'LogChainStarted', data: { key_id: keyId } }]);
  return ok([{ type: 'LogChainKeyChanged', data: { key_id: { from: head.keyId, to: keyId } } }]);
}

/** Characters of a MAC that `after` shows: 64 bits. */
const shown = 11;
const shownOf = (mac: string): string => mac.slice(0, shown);

/**
 * The text that a link's MAC covers. @param before the whole MAC of the command before
 * @internal exported for tests
 */
export function linkText(stream: string, before: string, events: readonly ProposedEvent[]): string {
  const last = events.length - 1;
  const content = events.map(({ id, type, data, metadata }, index) => [
    id,
    type,
    data,
    // The link cannot cover itself. Canonical JSON leaves out what is undefined.
    index === last && metadata.link !== undefined ? { ...metadata, link: undefined } : metadata,
  ]);
  return canonicalJson(['svc-log-chain-1', stream, before, content]);
}

export interface Linked {
  /** Undefined for a stream whose chain has not begun. */
  readonly link: CommandLink | undefined;
  readonly head: ChainHead;
}

/**
 * Links a command that is about to be appended.
 * @throws Error when the key of the chain is not known
 */
export function linkCommand(head: ChainHead, stream: string, events: readonly ProposedEvent[], macOf: MacOf): Linked {
  const event = events[0] && asLogChainEvent(events[0]);
  const keyId = keyOf(head, event);
  const mac = macOf(keyId, linkText(stream, head.mac, events));
  if (mac === undefined) throw new Error(`the key ${keyId} of the log chain of ${stream} is not known`);
  return {
    link: keyId === null ? undefined : { after: shownOf(head.mac), mac },
    head: headAfter(keyId, mac, event),
  };
}

/**
 * Checks a command as it is stored, before any upcasting.
 * @returns the head after it
 * @throws BrokenChainError
 */
export function followChain(head: ChainHead, command: RecordedCommand, macOf: MacOf): ChainHead {
  const { stream, events } = command;
  const broken = (kind: BreakKind): BrokenChainError =>
    new BrokenChainError({ kind, stream, revision: events[0].revision, commandId: events[0].metadata.command.id });
  const event = asLogChainEvent(events[0]);
  const keyId = keyOf(head, event);
  const link = storedLink(command);
  if (keyId === null && link !== undefined) throw broken('too_early');
  if (keyId !== null && link === undefined) throw broken('unlinked');
  if (link !== undefined && link.after !== shownOf(head.mac)) throw broken('misplaced');
  const mac = macOf(keyId, linkText(stream, head.mac, events));
  if (mac === undefined) throw broken('unknown_key');
  if (link !== undefined && link.mac !== mac) throw broken('altered');
  return headAfter(keyId, mac, event);
}

function headAfter(keyId: string | null, mac: string, event: LogChainEvent | undefined): ChainHead {
  return { keyId: event?.type === 'LogChainKeyChanged' ? event.data.key_id.to : keyId, mac };
}

/** The link that a command carries, of any shape, because stored data may have been altered. */
export function storedLink(command: RecordedCommand): Partial<CommandLink> | undefined {
  const link: unknown = lastEvent(command).metadata.link;
  if (link === undefined) return undefined;
  return typeof link === 'object' && link !== null ? (link as Partial<CommandLink>) : {};
}

/** The key that a command is linked under. The first one brings its own. */
function keyOf(head: ChainHead, event: LogChainEvent | undefined): string | null {
  if (head.keyId !== null) return head.keyId;
  if (event?.type !== 'LogChainStarted') return null;
  // Nothing has verified the event yet, so it may have any data.
  const data: Partial<typeof event.data> | null = event.data;
  return String(data?.key_id);
}

/**
 * The log chain of a stream: each command carries a MAC over the installation, the previous command's MAC and its own stored
 * events. Makes and checks these links with a given MAC function; holds no key. Implements `docs/log-chain.md`.
 */
import { lastEvent, type CommandLink, type ProposedEvent, type RecordedCommand } from '../../kernel/event.js';
import { canonicalJson } from '../../kernel/json.js';
import { headsNamedBy, type LogHead } from './heads.js';

/** The state of a stream's chain after a command. */
export interface ChainHead {
  /** The MAC of the last command; empty before the first. */
  readonly mac: string;
  /** The heads of other streams that the stream named last. */
  readonly named: readonly LogHead[];
}

export const emptyChain: ChainHead = { mac: '', named: [] };

/** The MAC function of an installation's chains, base64url. */
export interface ChainMac {
  readonly installationId: string;
  macOf(text: string): string;
}

const reasons = {
  unlinked: 'it carries no MAC',
  misplaced: 'it was not written after the command before it: one was dropped, inserted or moved',
  altered: 'its MAC does not fit its events: it was altered, or another installation wrote it',
} as const;

/** Why a command breaks the chain. */
export type BreakKind = keyof typeof reasons;

/** The first command that does not fit. */
export interface ChainBreak {
  readonly kind: BreakKind;
  readonly stream: string;
  /** The revision of the command's first event. */
  readonly revision: number;
  readonly commandId: string;
}

/** One sentence without a full stop, for readiness and the log. */
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

/** The 64 bits of a MAC that `after` shows. */
const shownOf = (mac: string): string => mac.slice(0, 11);

/**
 * The text that a link's MAC covers. @param before the whole MAC of the previous command
 * @internal exported for tests
 */
export function linkText(
  installationId: string,
  stream: string,
  before: string,
  events: readonly ProposedEvent[],
): string {
  const last = events.length - 1;
  const content = events.map(({ id, type, data, metadata }, index) => [
    id,
    type,
    data,
    // The link cannot cover itself. Canonical JSON leaves out what is undefined.
    index === last && metadata.link !== undefined ? { ...metadata, link: undefined } : metadata,
  ]);
  return canonicalJson(['svc-log-chain-1', installationId, stream, before, content]);
}

export interface Linked {
  readonly link: CommandLink;
  readonly head: ChainHead;
}

/** Links a command before its append. */
export function linkCommand(
  head: ChainHead,
  stream: string,
  events: readonly ProposedEvent[],
  { installationId, macOf }: ChainMac,
): Linked {
  const mac = macOf(linkText(installationId, stream, head.mac, events));
  return { link: { after: shownOf(head.mac), mac }, head: headAfter(head, mac, events) };
}

/**
 * Checks a command as it is stored, before any upcasting.
 * @returns the head after it
 * @throws BrokenChainError
 */
export function followChain(head: ChainHead, command: RecordedCommand, { installationId, macOf }: ChainMac): ChainHead {
  const { stream, events } = command;
  const broken = (kind: BreakKind): BrokenChainError =>
    new BrokenChainError({ kind, stream, revision: events[0].revision, commandId: events[0].metadata.command.id });
  const link = storedLink(command);
  if (link === undefined) throw broken('unlinked');
  if (link.after !== shownOf(head.mac)) throw broken('misplaced');
  const mac = macOf(linkText(installationId, stream, head.mac, events));
  if (link.mac !== mac) throw broken('altered');
  return headAfter(head, mac, events);
}

function headAfter({ named }: ChainHead, mac: string, [first]: readonly ProposedEvent[]): ChainHead {
  return { mac, named: (first && headsNamedBy(first)) ?? named };
}

/** The link that a command carries, of unknown shape, because stored data may have been altered. */
export function storedLink(command: RecordedCommand): Partial<CommandLink> | undefined {
  const link: unknown = lastEvent(command).metadata.link;
  if (link === undefined) return undefined;
  return typeof link === 'object' && link !== null ? (link as Partial<CommandLink>) : {};
}

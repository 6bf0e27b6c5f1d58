/**
 * What happened to the first command that does not fit: it was altered, inserted or moved, or commands before it are
 * missing. Compares it with every other command of its stream, which is read again for that.
 * Implements `docs/operations.md#the-log-chain`.
 */
import { asLogChainEvent } from '../domain/log-chain/declaration.js';
import type { ChainHead } from '../domain/log-chain/links.js';
import { linkText, shownOf, storedLink } from '../domain/log-chain/links.js';
import { unreachable } from '../kernel/errors.js';
import type { RecordedEvent } from '../kernel/event.js';
import { commandsOf } from './commands-of.js';
import type { StoredCommand } from './commands-of.js';
import type { LogChainKeys } from './keys.js';

export type FindingKind =
  | 'altered'
  | 'inserted'
  | 'moved'
  /** Commands before it are missing. */
  | 'dropped'
  /** What was written before the chain began is not what its first link covers. */
  | 'beginning'
  /** It is linked under the key of another master key, which this one does not open. */
  | 'unknown_key';

export interface Finding {
  readonly kind: FindingKind;
  readonly stream: string;
  /** Of the command's first event. */
  readonly revision: number;
  readonly commandId: string;
  /** One sentence, without a full stop. */
  readonly text: string;
}

interface Suspect {
  /** Before the command. */
  readonly head: ChainHead;
  /** Of the event before it. */
  readonly revision: number;
  readonly command: StoredCommand;
  readonly keys: Pick<LogChainKeys, 'macOf' | 'ids' | 'current'>;
  /** Reads the stream again from its start. */
  read(): AsyncIterable<RecordedEvent>;
}

/** What the rest of the stream says of the suspect. */
interface Witnesses {
  /** Another command was written where the suspect stands. */
  successor: boolean;
  /** The suspect was written, as it is, after a command that stands elsewhere. */
  origin: boolean;
  /** The same command stands before it already. */
  repeated: boolean;
  /** The command behind it was written after it. */
  continued: boolean;
  /** It is the last. */
  last: boolean;
}

export async function diagnose(suspect: Suspect): Promise<Finding> {
  const kind = await kindOf(suspect);
  const { command, head, keys } = suspect;
  const { stream, revision, metadata } = command.events[0];
  const commandId = String((metadata as Partial<typeof metadata> | null)?.command?.id);
  const keyId = head.keyId ?? asLogChainEvent(command.events[0])?.data?.key_id;
  const keyNote = kind === 'unknown_key' ? ` (${String(keyId)}; the given one is ${keys.current})` : '';
  return {
    kind,
    stream,
    revision,
    commandId,
    text: `${stream}@${revision}, command ${commandId}: ${sentence(kind)}${keyNote}`,
  };
}

function sentence(kind: FindingKind): string {
  switch (kind) {
    case 'altered':
      return 'it was altered';
    case 'inserted':
      return 'it was inserted';
    case 'moved':
      return 'it does not stand where it was written: commands were reordered';
    case 'dropped':
      return 'one or more commands before it were dropped';
    case 'beginning':
      return 'the log chain begins here, and something before it was altered, dropped, inserted or reordered';
    case 'unknown_key':
      return 'it is linked under the key of another master key';
    default:
      return unreachable(kind);
  }
}

async function kindOf(suspect: Suspect): Promise<FindingKind> {
  const { head, revision, command, keys } = suspect;
  const link = storedLink(command);
  const first = asLogChainEvent(command.events[0]);
  if (head.keyId === null && first?.type === 'LogChainStarted') {
    if (!keys.ids().includes(String(first.data?.key_id))) return 'unknown_key';
    return command.whole && link?.after !== shownOf(head.mac) && !isOwnMac(suspect) ? 'beginning' : 'altered';
  }
  if (head.keyId !== null && !keys.ids().includes(head.keyId)) return 'unknown_key';
  const witnesses = await hear(suspect);
  if (witnesses.successor || witnesses.repeated) return witnesses.origin && !witnesses.repeated ? 'moved' : 'inserted';
  if (command.events[0].revision !== revision + 1) return 'dropped';
  if (!command.whole || link === undefined || link.after === shownOf(head.mac) || isOwnMac(suspect)) return 'altered';
  if (witnesses.origin) return 'moved';
  return witnesses.continued || witnesses.last ? 'dropped' : 'altered';
}

/** The suspect's events are what was written here; only its link was altered. */
function isOwnMac({ head, command, keys }: Suspect): boolean {
  return isMacOf(command, head.mac, keys);
}

async function hear({ head, command, keys, read }: Suspect): Promise<Witnesses> {
  const witnesses: Witnesses = { successor: false, origin: false, repeated: false, continued: false, last: true };
  const link = storedLink(command);
  const at = command.events[0].revision;
  const next = command.events[0].revision + command.events.length;
  for await (const other of commandsOf(read())) {
    const place = other.events[0].revision;
    if (place === at) continue;
    const its = storedLink(other);
    if (place > at) {
      witnesses.last = false;
      if (its?.after === shownOf(head.mac) && isMacOf(other, head.mac, keys)) witnesses.successor = true;
    }
    if (link === undefined || its?.mac === undefined) continue;
    if (place < at && its.mac === link.mac && isSame(other, command)) witnesses.repeated = true;
    if (link.after === shownOf(its.mac) && isMacOf(command, its.mac, keys)) witnesses.origin = true;
    if (place === next && link.mac !== undefined && its.after === shownOf(link.mac)) {
      witnesses.continued = isMacOf(other, link.mac, keys);
    }
  }
  return witnesses;
}

const isSame = (a: StoredCommand, b: StoredCommand): boolean =>
  a.events.length === b.events.length && linkText(a.stream, '', a.events) === linkText(b.stream, '', b.events);

/** True when the command was written, as it is, after the one with the MAC, under whichever key. */
function isMacOf(command: StoredCommand, before: string, { macOf, ids }: Suspect['keys']): boolean {
  const mac = storedLink(command)?.mac;
  if (!command.whole || mac === undefined) return false;
  const text = linkText(command.stream, before, command.events);
  return ids().some((keyId) => macOf(keyId, text) === mac);
}

/**
 * All open connections, whether each carries a session, and how many connections without one each address has, so that
 * a newcomer can replace a connection that nobody will miss. It knows no sockets: `listener.ts` closes them. Each
 * operation takes constant time, because the table is needed most in a flood. Implements the bounds of
 * `docs/contract/agent-protocol.md#the-listener`.
 */
import { addressKey } from '../../kernel/addresses.js';
import { append, linkedList, remove, valuesOf, type LinkedList, type Place } from './linked-list.js';

/** A connection in the table, changed only by the table. */
export interface Entry<T> {
  readonly value: T;
  /** When it arrived, or lost its last session; monotonic milliseconds. */
  readonly since: number;
  /** How many sessions it carries. */
  readonly sessions: number;
}

/** Numbers of connections: `sniffing` ones have not sent their first bytes, `mirrored` ones are the target's so far. */
export type ConnectionKinds = Readonly<Record<'sniffing' | 'mirrored' | 'without_session' | 'with_session', number>>;

export interface ConnectionTable<T> {
  /** Adds a connection whose first bytes are awaited. */
  add(value: T, address: string, now: number): Entry<T>;
  /** The connection is mirrored to the target of REALITY, which may keep it waiting; `address` is the client's. */
  mirrored(entry: Entry<T>, address: string, now: number): void;
  /** Its first bytes have arrived, or REALITY has recognised an agent; `address` is the client's own. */
  sniffed(entry: Entry<T>, address: string, now: number): void;
  sessionOpened(entry: Entry<T>): void;
  sessionEnded(entry: Entry<T>, now: number): void;
  /** Does nothing if it was removed before. */
  remove(entry: Entry<T>): void;
  /** The oldest connection without a session, of the address that has most of them. */
  expendable(): Entry<T> | undefined;
  /** The connection whose first bytes have been awaited longest. */
  longestSniffed(): Entry<T> | undefined;
  /** The connection that has been without a session longest. */
  longestWithoutSession(): Entry<T> | undefined;
  /** All connections without a session, that one first, then the mirrored ones; each may be removed when reached. */
  withoutSession(): Iterable<Entry<T>>;
  /** The connection that has been mirrored longest. */
  longestMirrored(): Entry<T> | undefined;
  isMirrored(entry: Entry<T>): boolean;
  readonly size: number;
  kinds(): ConnectionKinds;
}

/** An address with connections without a session. */
interface Address<T> {
  /** In the order in which they arrived, or lost their last session. */
  readonly members: LinkedList<Member<T>>;
  /** Its place among the addresses with the same number. */
  rank: Place<Address<T>> | undefined;
}

interface Member<T> extends Entry<T> {
  key: string;
  since: number;
  sessions: number;
  /** False once removed. */
  present: boolean;
  /** Its places in the list by age and in its address's list, while it has no session. */
  inAge: Place<Member<T>> | undefined;
  inAddress: Place<Member<T>> | undefined;
  inSniffing: Place<Member<T>> | undefined;
  /** While mirrored: replaces its place by age. */
  inMirrored: Place<Member<T>> | undefined;
}

/** The addresses of connections without a session, by how many each has. */
function createAddressRanks<T>() {
  const addresses = new Map<string, Address<T>>();
  /** `ranks[n]`: the addresses with n connections without a session. */
  const ranks: LinkedList<Address<T>>[] = [];
  /** The largest n with an address. It changes by one at a time, as an address's number of connections does. */
  let highest = 0;

  const rank = (address: Address<T>): void => {
    if (address.rank !== undefined) remove(address.rank);
    const count = address.members.size;
    address.rank = count === 0 ? undefined : append((ranks[count] ??= linkedList()), address);
    if (count > highest) highest = count;
    else if (ranks[highest]?.size === 0) highest -= 1;
  };
  const join = (member: Member<T>): void => {
    const address = addresses.get(member.key) ?? { members: linkedList(), rank: undefined };
    addresses.set(member.key, address);
    member.inAddress = append(address.members, member);
    rank(address);
  };
  const leave = (member: Member<T>): void => {
    const address = addresses.get(member.key);
    if (member.inAddress === undefined || address === undefined) return;
    remove(member.inAddress);
    member.inAddress = undefined;
    rank(address);
    if (address.members.size === 0) addresses.delete(member.key);
  };
  return {
    join,
    leave,
    /** The member turned out to be of another address. */
    move(member: Member<T>, address: string): void {
      const key = addressKey(address);
      if (key === member.key) return;
      leave(member);
      member.key = key;
      join(member);
    },
    /** The oldest connection of the address that has the most of them. */
    oldestOfMost: (): Member<T> | undefined => ranks[highest]?.first?.value.members.first?.value,
  };
}

export function createConnectionTable<T>(): ConnectionTable<T> {
  const byAge = linkedList<Member<T>>();
  const sniffing = linkedList<Member<T>>();
  const mirrored = linkedList<Member<T>>();
  const addresses = createAddressRanks<T>();
  let size = 0;

  const loseSession = (member: Member<T>, now: number): void => {
    member.since = now;
    member.inAge = append(byAge, member);
    addresses.join(member);
  };
  const leave = (member: Member<T>, list: 'inAge' | 'inSniffing' | 'inMirrored'): void => {
    if (member[list] !== undefined) remove(member[list]);
    member[list] = undefined;
  };
  const leaveWithoutSession = (member: Member<T>): void => {
    leave(member, 'inAge');
    leave(member, 'inMirrored');
    addresses.leave(member);
  };
  const memberOf = (entry: Entry<T>): Member<T> => entry as Member<T>;

  return {
    add(value, address, now) {
      const member: Member<T> = {
        value,
        key: addressKey(address),
        since: now,
        sessions: 0,
        present: true,
        inAge: undefined,
        inAddress: undefined,
        inSniffing: undefined,
        inMirrored: undefined,
      };
      size += 1;
      member.inSniffing = append(sniffing, member);
      loseSession(member, now);
      return member;
    },
    mirrored(entry, address, now) {
      const member = memberOf(entry);
      if (!member.present) return;
      leave(member, 'inSniffing');
      leave(member, 'inAge');
      member.since = now;
      member.inMirrored = append(mirrored, member);
      addresses.move(member, address);
    },
    sniffed(entry, address, now) {
      const member = memberOf(entry);
      if (!member.present) return;
      leave(member, 'inSniffing');
      if (member.inMirrored !== undefined) {
        leave(member, 'inMirrored');
        member.since = now;
        member.inAge = append(byAge, member);
      }
      addresses.move(member, address);
    },
    sessionOpened(entry) {
      const member = memberOf(entry);
      member.sessions += 1;
      if (member.sessions === 1) leaveWithoutSession(member);
    },
    sessionEnded(entry, now) {
      const member = memberOf(entry);
      member.sessions -= 1;
      if (member.sessions === 0 && member.present) loseSession(member, now);
    },
    remove(entry) {
      const member = memberOf(entry);
      if (!member.present) return;
      member.present = false;
      size -= 1;
      leave(member, 'inSniffing');
      leaveWithoutSession(member);
    },
    expendable: addresses.oldestOfMost,
    longestSniffed: () => sniffing.first?.value,
    longestWithoutSession: () => byAge.first?.value,
    *withoutSession() {
      for (const list of [byAge, mirrored]) yield* valuesOf(list);
    },
    longestMirrored: () => mirrored.first?.value,
    isMirrored: (entry) => memberOf(entry).inMirrored !== undefined,
    get size() {
      return size;
    },
    kinds: () => ({
      sniffing: sniffing.size,
      mirrored: mirrored.size,
      without_session: byAge.size - sniffing.size,
      with_session: size - byAge.size - mirrored.size,
    }),
  };
}

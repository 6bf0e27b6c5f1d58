/**
 * The listening side of UDP ENC for all flows of one socket, with any number of keys: answers handshakes, opens
 * datagrams, and follows each dialler to its newest session and address. Has no socket and no clock: the owner passes
 * in datagrams and the time, and calls `poll` now and then. Implements the listener of `docs/data-plane.md#enc`.
 */
import { randomInt } from 'node:crypto';
import type { X25519KeyPair } from '../../kernel/crypto/crypto.js';
import { createTokenBucket } from '../../kernel/token-bucket.js';
import { respond } from '../noise/handshake.js';
import { answerPacket, index, indexBytes, keyIdOf, noiseMessageBytes, readPacket, type Packet } from './packets.js';
import { contentKind, createEncSession, datagramMaxBytes, encParty, type EncSession, type Opened } from './session.js';
import { encTiming } from './timing.js';

/**
 * The maximum number of handshakes that were answered and wait for their first datagram; above it, the oldest is dropped.
 * @internal exported for tests
 */
export const halfOpenMax = 4096;
/** The maximum number of handshakes that wait to be read; above it, the oldest is dropped. */
const waitingMax = 4096;
/** Handshakes and rekeys per second and at once, since each costs three key agreements. */
const handshakeBudget = { perSecond: 500, burst: 1000 } as const;

export interface EncKey<Rule> {
  readonly keys: X25519KeyPair;
  /** How the owner serves a flow that opened with this key. */
  readonly rule: Rule;
}

/** The address of a dialler. */
export interface PeerAddress {
  readonly address: string;
  readonly port: number;
}

/** A dialler that has proved that it holds its session. */
export interface EncPeer<Rule> {
  readonly rule: Rule;
  /** Where its newest datagram came from. */
  readonly address: PeerAddress;
  /** Sends it a datagram. @returns false if it was dropped: too large, or the session has ended */
  send(datagram: Uint8Array, now: number): boolean;
  /** Forgets it. */
  close(): void;
}

export interface EncListener<Rule> {
  /** Replaces the keys for new handshakes; existing flows go on. */
  setKeys(keys: readonly EncKey<Rule>[]): void;
  /**
   * Handles any datagram. A handshake waits for `answerOne`, so that a flood of them does not delay the datagrams of
   * existing flows.
   * @returns `other`: it does not have the shape of ENC; `dropped`: it does, but is not authentic
   */
  take(bytes: Buffer, from: PeerAddress, now: number): 'taken' | 'waits' | 'dropped' | 'other';
  /**
   * Answers the oldest waiting handshake. Drops those whose dialler has tried again meanwhile.
   * @returns whether others wait
   */
  answerOne(now: number): boolean;
  /** Forgets answered handshakes that nothing followed. */
  poll(now: number): void;
  readonly halfOpen: number;
  /** Forgets everything. */
  close(): void;
}

export interface EncListenerOptions<Rule> {
  readonly transmit: (packet: Buffer, to: PeerAddress) => void;
  /**
   * Accepts a new dialler. The owner closes it when its flow is over; nothing here ends one.
   * @returns false to refuse it, and forget it
   */
  readonly met: (peer: EncPeer<Rule>) => boolean;
  /** Hands back a handshake that was not answered, because it was not authentic or there was no time for it. */
  readonly refused?: (bytes: Buffer, from: PeerAddress) => void;
  /** Receives a datagram of an accepted dialler. */
  readonly deliver: (datagram: Buffer, peer: EncPeer<Rule>) => void;
  readonly now: number;
}

interface Peer<Rule> extends EncPeer<Rule> {
  address: PeerAddress;
  current: EncSession;
  previous: { readonly session: EncSession; readonly until: number } | undefined;
  /** The answer to its rekey, until it is used. */
  next: EncSession | undefined;
}

/** A handshake that waits to be read. */
interface Waiting<Rule> {
  readonly key: EncKey<Rule>;
  readonly bytes: Buffer;
  readonly packet: Extract<Packet, { readonly kind: 'handshake' }>;
  readonly from: PeerAddress;
  readonly since: number;
}

interface Known<Rule> {
  readonly session: EncSession;
  readonly rule: EncKey<Rule>;
  /** Undefined until the first packet in the session of an open handshake. */
  peer: Peer<Rule> | undefined;
}

/** The sessions of a listener by their index. Those without a peer are half open, and bounded. */
function createSessions<Rule>() {
  const sessions = new Map<number, Known<Rule>>();
  /** Oldest first. */
  const halfOpen = new Set<Known<Rule>>();
  const forget = (session: EncSession): void => {
    const known = sessions.get(session.ownIndex);
    sessions.delete(session.ownIndex);
    if (known !== undefined) halfOpen.delete(known);
    session.wipe();
  };
  return {
    get: (own: number) => sessions.get(own),
    freeIndex(): number {
      for (;;) {
        const own = randomInt(2 ** 32);
        if (!sessions.has(own)) return own;
      }
    },
    add(known: Known<Rule>): void {
      sessions.set(known.session.ownIndex, known);
      if (known.peer !== undefined) return;
      halfOpen.add(known);
      const [oldest] = halfOpen;
      if (halfOpen.size > halfOpenMax && oldest !== undefined) forget(oldest.session);
    },
    /** It has a peer now. */
    complete: (known: Known<Rule>) => void halfOpen.delete(known),
    forget,
    poll(now: number): void {
      for (const known of halfOpen) {
        if (now - known.session.startedAt < encTiming.halfOpenMs) break;
        forget(known.session);
      }
      for (const { peer } of sessions.values()) {
        if (peer?.previous === undefined || now < peer.previous.until) continue;
        forget(peer.previous.session);
        peer.previous = undefined;
      }
    },
    get halfOpen() {
      return halfOpen.size;
    },
    close(): void {
      for (const { session } of sessions.values()) session.wipe();
      sessions.clear();
      halfOpen.clear();
    },
  };
}

export function createEncListener<Rule>(options: EncListenerOptions<Rule>): EncListener<Rule> {
  const { transmit, met, deliver, refused = () => undefined } = options;
  const budget = createTokenBucket(handshakeBudget.perSecond, handshakeBudget.burst, options.now);
  let keysById = new Map<string, EncKey<Rule>>();
  const sessions = createSessions<Rule>();
  const { forget } = sessions;
  /** Oldest first. */
  const waiting = new Set<Waiting<Rule>>();

  /** Answers message 1. @returns message 2 and the new session; undefined if it is for another key, or time is short */
  const answer = (key: EncKey<Rule>, sender: number, message: Buffer, now: number) => {
    if (budget.wait(now) > 0) return undefined;
    budget.take(now);
    const responded = respond(encParty({ localStatic: key.keys }), message);
    const finished = responded.ok ? responded.value.finish(Buffer.alloc(0)) : responded;
    if (!finished.ok) return undefined;
    const session = createEncSession(finished.value, { own: sessions.freeIndex(), peer: sender }, now);
    return { session, message: finished.value.message };
  };

  const takeHandshake = ({ key, packet: { sender, message }, bytes, from }: Waiting<Rule>, now: number): void => {
    const answered = answer(key, sender, message, now);
    if (answered === undefined) return refused(bytes, from);
    const { session } = answered;
    sessions.add({ session, rule: key, peer: undefined });
    transmit(answerPacket(sender, session.ownIndex, answered.message), from);
  };

  const createPeer = ({ session, rule }: Known<Rule>, address: PeerAddress): Peer<Rule> => {
    const peer: Peer<Rule> = {
      rule: rule.rule,
      address,
      current: session,
      previous: undefined,
      next: undefined,
      send(datagram, now) {
        if (datagram.length > datagramMaxBytes) return false;
        return say(peer, contentKind.datagram, datagram, now);
      },
      close() {
        for (const one of [peer.current, peer.previous?.session, peer.next]) if (one !== undefined) forget(one);
      },
    };
    return peer;
  };

  const say = (peer: Peer<Rule>, kind: number, content: Uint8Array, now: number): boolean => {
    const packet = peer.current.seal(kind, content, now);
    if (packet === undefined) return false;
    transmit(packet, peer.address);
    return true;
  };

  /** The session is in use, so its dialler holds it: makes it current. @returns undefined if the peer is refused */
  const confirm = (known: Known<Rule>, from: PeerAddress, now: number): Peer<Rule> | undefined => {
    if (known.peer === undefined) {
      sessions.complete(known);
      const made = createPeer(known, from);
      if (!met(made)) {
        forget(known.session);
        return undefined;
      }
      known.peer = made;
    }
    const { peer } = known;
    if (peer.next === known.session) {
      if (peer.previous !== undefined) forget(peer.previous.session);
      peer.previous = { session: peer.current, until: now + encTiming.overlapMs };
      peer.current = known.session;
      peer.next = undefined;
    }
    return peer;
  };

  const rekey = (peer: Peer<Rule>, key: EncKey<Rule>, content: Buffer, now: number): void => {
    if (content.length !== indexBytes + noiseMessageBytes) return;
    const sender = content.readUInt32BE(0);
    const answered = answer(key, sender, content.subarray(indexBytes), now);
    if (answered === undefined) return;
    if (peer.next !== undefined) forget(peer.next);
    peer.next = answered.session;
    sessions.add({ session: answered.session, rule: key, peer });
    const said = Buffer.concat([index(sender), index(answered.session.ownIndex), answered.message]);
    say(peer, contentKind.rekeyAnswer, said, now);
  };

  const takeOpened = (
    known: Known<Rule>,
    { kind, content, isNewest }: Opened,
    from: PeerAddress,
    now: number,
  ): void => {
    const peer = confirm(known, from, now);
    if (peer === undefined) return;
    if (isNewest && peer.current === known.session) peer.address = from;
    if (kind === contentKind.datagram) deliver(content, peer);
    else if (kind === contentKind.ping) say(peer, contentKind.pong, Buffer.alloc(0), now);
    else if (kind === contentKind.rekey) rekey(peer, known.rule, content, now);
  };

  return {
    setKeys(keys) {
      keysById = new Map(keys.map((key) => [keyIdOf(key.keys.publicKey), key]));
    },
    take(bytes, from, now) {
      const packet = readPacket(bytes);
      if (packet?.kind === 'handshake') {
        const key = keysById.get(packet.keyId);
        if (key === undefined) return 'other';
        waiting.add({ key, bytes, packet, from, since: now });
        const [oldest] = waiting;
        if (waiting.size > waitingMax && oldest !== undefined) waiting.delete(oldest);
        return 'waits';
      }
      if (packet?.kind !== 'transport') return 'other';
      const known = sessions.get(packet.receiver);
      if (known === undefined) return 'other';
      const opened = known.session.open(packet.counter, packet.ciphertext, now);
      if (opened === undefined) return 'dropped';
      takeOpened(known, opened, from, now);
      return 'taken';
    },
    answerOne(now) {
      for (const handshake of waiting) {
        waiting.delete(handshake);
        if (now - handshake.since > encTiming.handshakeStaleMs) continue;
        takeHandshake(handshake, now);
        break;
      }
      return waiting.size > 0;
    },
    poll: sessions.poll,
    get halfOpen() {
      return sessions.halfOpen;
    },
    close() {
      sessions.close();
      waiting.clear();
    },
  };
}

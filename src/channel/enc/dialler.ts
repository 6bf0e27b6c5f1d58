/**
 * The dialling side of UDP ENC for one flow: performs the handshake, rekeys, and notices a listener that has forgotten
 * it. Has no socket and no clock: the owner passes in packets and the time, and calls `poll` a few times a second.
 * Implements the dialler of `docs/data-plane.md#enc`.
 */
import { randomInt } from 'node:crypto';
import { initiate } from '../noise/handshake.js';
import { handshakePacket, index, indexBytes, keyIdOf, noiseMessageBytes, readPacket } from './packets.js';
import { contentKind, createEncSession, datagramMaxBytes, encParty, type EncSession } from './session.js';
import { encTiming } from './timing.js';

export interface EncDialler {
  /** Sends a datagram. @returns false without a session or for a datagram that is too large; then nothing was sent */
  send(datagram: Uint8Array, now: number): boolean;
  /** Handles bytes from the hop; any bytes are allowed. */
  take(bytes: Buffer, now: number): void;
  /** Does what is due. @returns `dead`: the hop does not answer, and the flow must end */
  poll(now: number): 'alive' | 'dead';
  /** Whether there is a session. */
  readonly isReady: boolean;
  /** Overwrites all keys. */
  close(): void;
}

interface EncDiallerOptions {
  /** X25519 public key of the hop, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** Sends a packet to the hop. */
  readonly transmit: (packet: Buffer) => void;
  /** Receives a datagram that the hop sent. */
  readonly deliver: (datagram: Buffer) => void;
  /** Called once, when the first session is established. */
  readonly ready: () => void;
  readonly now: number;
}

type Initiated = Extract<ReturnType<typeof initiate>, { ok: true }>['value'];

/** Handshakes waiting for an answer; the first answer ends them all. */
interface Attempt {
  /**
   * By index. In the open, any attempt may be answered, because a busy hop answers late. Within a session only the
   * newest may, because the hop has forgotten its answers to the others.
   */
  readonly tries: ReadonlyMap<number, Initiated>;
  /** Within the session, to replace it; otherwise in the open. */
  readonly inside: boolean;
  readonly nextAt: number;
}

/** Starts with a handshake. */
export function createEncDialler(options: EncDiallerOptions): EncDialler {
  const { publicKey, transmit, deliver, ready } = options;
  const keyId = keyIdOf(publicKey);
  let current: EncSession | undefined;
  let previous: { readonly session: EncSession; readonly until: number } | undefined;
  let attempt: Attempt | undefined;
  /** When the first datagram was sent that nothing authentic has followed. */
  let unansweredSince: number | undefined;
  let pings = 0;
  let pingAt = 0;

  const giveUp = (): void => {
    for (const initiated of attempt?.tries.values() ?? []) initiated.discard();
    attempt = undefined;
  };

  const begin = (inside: boolean, now: number): void => {
    if (inside || attempt?.inside === true) giveUp();
    const initiated = initiate(encParty({ remoteStatic: publicKey }), Buffer.alloc(0));
    // The key has small order: no attempt can succeed, so `poll` reports the flow dead.
    if (!initiated.ok) return giveUp();
    const own = randomInt(2 ** 32);
    const before = attempt?.tries ?? [];
    const waitMs = inside ? encTiming.rekeyRetryMs : (encTiming.handshakeTriesMs[attempt?.tries.size ?? 0] ?? 0);
    attempt = { tries: new Map([...before, [own, initiated.value]]), inside, nextAt: now + waitMs };
    const { message } = initiated.value;
    if (!inside) return transmit(handshakePacket(keyId, own, message));
    say(contentKind.rekey, Buffer.concat([index(own), message]), now);
  };

  const say = (kind: number, content: Uint8Array, now: number): boolean => {
    const packet = current?.seal(kind, content, now);
    if (packet === undefined) return false;
    transmit(packet);
    return true;
  };

  const finish = (inside: boolean, receiver: number, sender: number, message: Buffer, now: number): void => {
    const initiated = attempt?.inside === inside ? attempt.tries.get(receiver) : undefined;
    const finished = initiated?.finish(message);
    // The next attempt is due soon.
    if (finished?.ok !== true) return;
    const isFirst = current === undefined;
    previous?.session.wipe();
    previous = current && { session: current, until: now + encTiming.overlapMs };
    current = createEncSession(finished.value, { own: receiver, peer: sender }, now);
    giveUp();
    heard();
    // The listener sends in the new session only after it has heard from it.
    say(contentKind.ping, Buffer.alloc(0), now);
    if (isFirst) ready();
  };

  const heard = (): void => {
    unansweredSince = undefined;
    pings = 0;
  };

  const takeTransport = (receiver: number, counter: number, ciphertext: Buffer, now: number): void => {
    const session = [current, previous?.session].find((one) => one?.ownIndex === receiver);
    const opened = session?.open(counter, ciphertext, now);
    if (opened === undefined) return;
    heard();
    const { kind, content } = opened;
    if (kind === contentKind.datagram) deliver(content);
    else if (kind === contentKind.ping) say(contentKind.pong, Buffer.alloc(0), now);
    else if (kind === contentKind.rekeyAnswer && content.length === 2 * indexBytes + noiseMessageBytes)
      finish(true, content.readUInt32BE(0), content.readUInt32BE(indexBytes), content.subarray(2 * indexBytes), now);
  };

  /** Pings a listener that has been silent for long; if it stays silent, assumes that it has forgotten the session. */
  const lookForLife = (since: number, now: number): void => {
    if (now - since < encTiming.silenceMs || now < pingAt || attempt?.inside === false) return;
    if (pings >= encTiming.pings) return begin(false, now);
    pings += 1;
    pingAt = now + encTiming.pingEveryMs;
    say(contentKind.ping, Buffer.alloc(0), now);
  };

  begin(false, options.now);

  return {
    get isReady() {
      return current !== undefined;
    },
    send(datagram, now) {
      if (datagram.length > datagramMaxBytes || !say(contentKind.datagram, datagram, now)) return false;
      unansweredSince ??= now;
      return true;
    },
    take(bytes, now) {
      const packet = readPacket(bytes);
      if (packet?.kind === 'answer') finish(false, packet.receiver, packet.sender, packet.message, now);
      else if (packet?.kind === 'transport') takeTransport(packet.receiver, packet.counter, packet.ciphertext, now);
    },
    poll(now) {
      if (current?.tooOld(now) === true) return 'dead';
      if (previous !== undefined && now >= previous.until) {
        previous.session.wipe();
        previous = undefined;
      }
      if (attempt === undefined) {
        if (current === undefined) return 'dead';
        if (current.isDueForRekey(now)) begin(true, now);
      } else if (now >= attempt.nextAt) {
        if (!attempt.inside && attempt.tries.size >= encTiming.handshakeTriesMs.length) return 'dead';
        begin(attempt.inside, now);
      }
      if (unansweredSince !== undefined) lookForLife(unansweredSince, now);
      return 'alive';
    },
    close() {
      giveUp();
      current?.wipe();
      previous?.session.wipe();
      current = previous = undefined;
    },
  };
}

/**
 * The outbox of one agent: small answers in a bounded queue and one slot for a snapshot. One fragment is in flight at a
 * time; the next is encrypted once the peer's window has taken it. So a peer that does not read costs one snapshot and
 * a few answers, however long it sleeps. Implements `docs/contract/agent-protocol.md#configuration` ("at most one
 * unsent snapshot").
 */
import type { PushSlot, SnapshotPush } from '../../delivery/port.js';
import type { CipherState } from '../../channel/noise/cipher-state.js';
import { maxFragmentBytes, plaintextAt } from '../../channel/noise/fragmenter.js';
import type { AgentStream, StreamStatus } from './agent-stream.js';
import { encodeFrame } from './frames.js';
import { ServicePayload } from '../../gen/svc/control/v1/session.js';
import { limits } from '../../kernel/limits.js';
import type { CloseReason } from './close-reasons.js';

/** How long a revoked session may take to read its SessionClose before its socket is closed. */
const revokedFlushMs = 100;
/** Time between sending the status of a revoked session and closing its socket, so that the status is delivered. */
const revokedLingerMs = 20;
/**
 * Turns of the event loop before a socket is closed: each looks at the sockets, which a busy process may not have done
 * in time.
 */
const turnsBeforeKill = 20;

interface OutboxOptions {
  readonly stream: AgentStream;
  readonly cipher: CipherState;
  now(): number;
  /** The peer's window has taken a whole snapshot. */
  onSent(push: SnapshotPush): void;
  /** Other outcomes of a snapshot: it waits, a newer one takes its place, or the stream ends before it is sent. */
  onSnapshot(fate: 'offered' | 'superseded' | 'discarded'): void;
  /** One fragment has been sent: the queue may be shorter. */
  onProgress(): void;
  /** A frame has been written, for counting. */
  onFrame(): void;
}

/** A message being sent. */
interface Message {
  readonly payload: Uint8Array;
  /** The snapshot, if the message is one. */
  readonly push: SnapshotPush | undefined;
  /** Where its next fragment starts. */
  offset: number;
}

interface Ending {
  /** Cleared once it is being sent. */
  last: Uint8Array | undefined;
  readonly status: StreamStatus;
}

const messageOf = (payload: Uint8Array, push?: SnapshotPush): Message => ({ payload, push, offset: 0 });

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
export class Outbox implements PushSlot {
  readonly #options: OutboxOptions;
  /** Waiting answers; undefined until one has to wait, which is rare. */
  #queue: Uint8Array[] | undefined;
  #slot: SnapshotPush | undefined;
  #current: Message | undefined;
  #ending: Ending | undefined;
  #over = false;
  /** When the current fragment was handed to the stream, by the owner's clock; undefined if there is none. */
  writingSince: number | undefined;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Queues the bytes of one small `ServicePayload`. */
  send(payload: Uint8Array): void {
    if (this.#over || this.#ending !== undefined) return;
    (this.#queue ??= []).push(payload);
    this.#write();
  }
  offer(push: SnapshotPush): void {
    if (this.#over || this.#ending !== undefined) return;
    this.#options.onSnapshot('offered');
    if (this.#slot !== undefined) this.#options.onSnapshot('superseded');
    this.#slot = push;
    this.#write();
  }
  /** How many answers wait. The owner stops reading from an agent that lets them pile up. */
  get waiting(): number {
    return this.#queue?.length ?? 0;
  }
  /**
   * Drops waiting answers, finishes the half-sent message (nothing may come between its fragments), sends `last` if
   * given, and ends the stream.
   */
  finish(last: Uint8Array | undefined, status: StreamStatus): void {
    if (this.#over || this.#ending !== undefined) return;
    this.#queue = undefined;
    this.#dropSlot();
    // Without a last message, a half-sent one need not be finished.
    if (last === undefined) this.#dropCurrent();
    this.#ending = { last, status };
    if (last === undefined) {
      this.#over = true;
      this.#options.stream.close(status);
    } else {
      this.#write();
    }
  }
  /** The stream is over: nothing more is written, the key is wiped. */
  discard(): void {
    this.#over = true;
    this.#queue = undefined;
    this.#dropSlot();
    this.#dropCurrent();
    this.#options.cipher.wipe();
  }

  #pick(): Message | undefined {
    if (this.#ending !== undefined) {
      const { last } = this.#ending;
      this.#ending.last = undefined;
      return last === undefined ? undefined : messageOf(last);
    }
    const payload = this.#queue?.shift();
    if (payload !== undefined) return messageOf(payload);
    const push = this.#slot;
    this.#slot = undefined;
    return push === undefined ? undefined : messageOf(push.payload, push);
  }
  #nextFragment(): Uint8Array | undefined {
    for (;;) {
      this.#current ??= this.#pick();
      const message = this.#current;
      if (message === undefined) return undefined;
      const { payload, push, offset } = message;
      // An empty payload is one empty fragment.
      if (offset === 0 || offset < payload.length) {
        message.offset = offset + maxFragmentBytes;
        return plaintextAt(payload, offset);
      }
      this.#current = undefined;
      if (push !== undefined) this.#options.onSent(push);
    }
  }
  #dropSlot(): void {
    if (this.#slot !== undefined) this.#options.onSnapshot('discarded');
    this.#slot = undefined;
  }
  #dropCurrent(): void {
    if (this.#current?.push !== undefined) this.#options.onSnapshot('discarded');
    this.#current = undefined;
  }
  #write(): void {
    if (this.#over || this.writingSince !== undefined) return;
    const { stream, cipher } = this.#options;
    const fragment = this.#nextFragment();
    if (fragment === undefined) {
      if (this.#ending !== undefined) {
        this.#over = true;
        stream.close(this.#ending.status);
      }
      return;
    }
    const sequence = cipher.nextSequence;
    const encrypted = cipher.encrypt(sequence, fragment);
    // Encryption fails only with a wiped key: the stream is over.
    if (!encrypted.ok) return;
    this.writingSince = this.#options.now();
    this.#options.onFrame();
    stream.send(encodeFrame(sequence, encrypted.value), () => {
      this.writingSince = undefined;
      this.#write();
      this.#options.onProgress();
    });
  }
}

function afterTurns(turns: number, act: () => void): void {
  setImmediate(() => (turns > 1 ? afterTurns(turns - 1, act) : act()));
}

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
export class SessionClosing {
  readonly #stream: AgentStream;
  readonly #outbox: Outbox;
  #forcedClose: NodeJS.Timeout | undefined;
  #isGone = false;
  #resolveClosed: () => void = () => undefined;
  /** Resolves when the stream is over. */
  readonly closed: Promise<void>;

  constructor(stream: AgentStream, outbox: Outbox) {
    this.#stream = stream;
    this.#outbox = outbox;
    this.closed = new Promise<void>((resolve) => {
      this.#resolveClosed = resolve;
    });
  }

  /** @param proven false: the peer has not shown that it has the keys, so it gets the bare status */
  begin(reason: CloseReason, proven: boolean): void {
    const close = proven ? reason.close : undefined;
    this.#outbox.finish(
      close === undefined ? undefined : ServicePayload.encode({ payload: { $case: 'close', value: close } }).finish(),
      reason.status,
    );
    const revoked = reason.cause === 'revoked';
    const kill = (): void => this.#stream.kill();
    const killUnread = (): void => (this.#isGone ? undefined : kill());
    this.#forcedClose = setTimeout(
      () => afterTurns(turnsBeforeKill, killUnread),
      revoked ? revokedFlushMs : limits.agent.closeGraceMs,
    );
    // A revoked node keeps no connection, even if it reads: it is cut once the status has been sent.
    if (revoked) void this.closed.then(() => setTimeout(() => afterTurns(turnsBeforeKill, kill), revokedLingerMs));
  }
  /** The stream is over. */
  gone(): void {
    this.#isGone = true;
    clearTimeout(this.#forcedClose);
    this.#outbox.discard();
    this.#resolveClosed();
  }
}

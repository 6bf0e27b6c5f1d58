/**
 * What waits to be sent to one agent: small answers in a bounded queue and one slot for a snapshot. One fragment is on
 * its way at a time; the next is encrypted once the peer's window has taken it. So a peer that does not read costs one
 * snapshot and a few answers, however long it sleeps.
 * Implements `docs/contract/agent-protocol.md#configuration` ("at most one unsent snapshot").
 */
import type { PushSlot, SnapshotPush } from '../../delivery/port.js';
import type { CipherState } from '../../noise/cipher-state.js';
import { fragmentsOf } from '../../noise/fragmenter.js';
import type { AgentStream, StreamStatus } from './agent-stream.js';
import { encodeFrame } from './frame.js';

export interface Outbox extends PushSlot {
  /** Queues the bytes of one small `ServicePayload`. */
  send(payload: Uint8Array): void;
  /** Number of answers that wait. The owner stops reading from an agent that lets them pile up. */
  readonly waiting: number;
  /** When the fragment on its way was handed to the stream, by the owner's clock; undefined if there is none. */
  readonly writingSince: number | undefined;
  /**
   * Drops what waits, finishes the message that is half sent (nothing may come between its fragments), sends `last` if
   * there is one, and ends the stream.
   */
  finish(last: Uint8Array | undefined, status: StreamStatus): void;
  /** The stream is over: nothing more is written, the key is wiped. */
  discard(): void;
}

interface OutboxOptions {
  readonly stream: AgentStream;
  readonly cipher: CipherState;
  now(): number;
  /** The peer's window has taken a whole snapshot. */
  onSent(push: SnapshotPush): void;
  /** What else becomes of a snapshot: it waits, a newer one takes its place, or the stream ends before it is sent. */
  onSnapshot(fate: 'offered' | 'superseded' | 'discarded'): void;
  /** One fragment has been sent: the queue may be shorter. */
  onProgress(): void;
  /** A frame has been written, for counting. */
  onFrame(): void;
}

interface Message {
  readonly fragments: Iterator<Uint8Array, void, void>;
  readonly push: SnapshotPush | undefined;
}

interface Ending {
  /** Cleared once it is on its way. */
  last: Uint8Array | undefined;
  readonly status: StreamStatus;
}

export function createOutbox(options: OutboxOptions): Outbox {
  const { stream, cipher } = options;
  const queue: Uint8Array[] = [];
  let slot: SnapshotPush | undefined;
  let current: Message | undefined;
  let writingSince: number | undefined;
  let ending: Ending | undefined;
  let over = false;

  const message = (payload: Uint8Array, push?: SnapshotPush): Message => ({ fragments: fragmentsOf(payload), push });

  const pick = (): Message | undefined => {
    if (ending !== undefined) {
      const { last } = ending;
      ending.last = undefined;
      return last === undefined ? undefined : message(last);
    }
    const payload = queue.shift();
    if (payload !== undefined) return message(payload);
    const push = slot;
    slot = undefined;
    return push === undefined ? undefined : message(push.payload, push);
  };

  const nextFragment = (): Uint8Array | undefined => {
    for (;;) {
      current ??= pick();
      if (current === undefined) return undefined;
      const fragment = current.fragments.next();
      if (fragment.done !== true) return fragment.value;
      const { push } = current;
      current = undefined;
      if (push !== undefined) options.onSent(push);
    }
  };

  const dropSlot = (): void => {
    if (slot !== undefined) options.onSnapshot('discarded');
    slot = undefined;
  };
  const dropCurrent = (): void => {
    if (current?.push !== undefined) options.onSnapshot('discarded');
    current = undefined;
  };

  const write = (): void => {
    if (over || writingSince !== undefined) return;
    const fragment = nextFragment();
    if (fragment === undefined) {
      if (ending !== undefined) {
        over = true;
        stream.close(ending.status);
      }
      return;
    }
    const sequence = cipher.nextSequence;
    const encrypted = cipher.encrypt(sequence, fragment);
    // Encryption fails only with a wiped key: the stream is over.
    if (!encrypted.ok) return;
    writingSince = options.now();
    options.onFrame();
    stream.send(encodeFrame(sequence, encrypted.value), () => {
      writingSince = undefined;
      write();
      options.onProgress();
    });
  };

  return {
    send(payload) {
      if (over || ending !== undefined) return;
      queue.push(payload);
      write();
    },
    offer(push) {
      if (over || ending !== undefined) return;
      options.onSnapshot('offered');
      if (slot !== undefined) options.onSnapshot('superseded');
      slot = push;
      write();
    },
    get waiting() {
      return queue.length;
    },
    get writingSince() {
      return writingSince;
    },
    finish(last, status) {
      if (over || ending !== undefined) return;
      queue.length = 0;
      dropSlot();
      // Without a last message, a half-sent one need not be finished.
      if (last === undefined) dropCurrent();
      ending = { last, status };
      if (last === undefined) {
        over = true;
        stream.close(status);
      } else {
        write();
      }
    },
    discard() {
      over = true;
      queue.length = 0;
      dropSlot();
      dropCurrent();
      cipher.wipe();
    },
  };
}

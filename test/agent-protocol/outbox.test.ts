/** What waits to be sent to one agent: the order of messages, and how the last of them ends the stream. */
import { describe, expect, test } from 'vitest';
import type { SnapshotPush } from '../../src/delivery/port.js';
import { GrpcStatus } from '../../src/kernel/errors.js';
import { CipherState } from '../../src/channel/noise/cipher-state.js';
import { Joiner, maxFragmentBytes } from '../../src/channel/noise/fragmenter.js';
import type { AgentStream, StreamStatus } from '../../src/transport/agent/agent-stream.js';
import { decodeFrame } from '../../src/transport/agent/frames.js';
import { Outbox } from '../../src/transport/agent/outbox.js';
import { valueOf } from '../support/noise-parties.js';

const draining: StreamStatus = { code: GrpcStatus.UNAVAILABLE, details: 'draining' };
const key = (): Uint8Array => new Uint8Array(32).fill(5);
const of = (name: string, fragments = 1): SnapshotPush => ({
  generation: fragments,
  checksum: new Uint8Array(32),
  payload: Buffer.alloc((fragments - 1) * maxFragmentBytes + 1, name),
});

interface Peer {
  readonly outbox: Outbox;
  /** What became of snapshots, beside those that were sent. */
  readonly fates: readonly string[];
  /** Takes the fragment that is on its way. @returns false when there is none */
  takeOne(): boolean;
  takeAll(): void;
  /** The first letter of each whole message, in order, then the status. */
  readonly heard: string[];
  /** Snapshots that were sent as a whole. */
  readonly sent: number[];
}

/** A peer that reads one frame when the test says so. */
function peer(): Peer {
  const cipher = new CipherState(key());
  const joiner = new Joiner(16 * 1024 * 1024);
  const heard: string[] = [];
  const sent: number[] = [];
  const fates: string[] = [];
  let onItsWay: { readonly bytes: Uint8Array; readonly done: () => void } | undefined;
  const stream = {
    send(bytes: Uint8Array, done: () => void) {
      expect(onItsWay, 'one fragment on its way at a time').toBeUndefined();
      onItsWay = { bytes, done };
    },
    close: ({ details }: StreamStatus) => void heard.push(details),
  } as unknown as AgentStream;
  const outbox = new Outbox({
    stream,
    cipher: new CipherState(key()),
    now: () => 0,
    onSent: ({ generation }) => void sent.push(generation),
    onProgress: () => undefined,
    onFrame: () => undefined,
    onSnapshot: (fate) => void fates.push(fate),
  });
  const takeOne = (): boolean => {
    const taken = onItsWay;
    if (taken === undefined) return false;
    onItsWay = undefined;
    const frame = decodeFrame(taken.bytes)!;
    const joined = joiner.push(valueOf(cipher.decrypt(frame.sequence, frame.ciphertext)));
    expect(joined.kind).not.toBe('refused');
    if (joined.kind === 'payload') heard.push(String.fromCharCode(joined.payload[0]!));
    taken.done();
    return true;
  };
  const takeAll = (): void => {
    for (let rounds = 0; takeOne(); rounds += 1) expect(rounds).toBeLessThan(100);
  };
  return { outbox, takeOne, takeAll, heard, sent, fates };
}

describe('a close', () => {
  test('during a half-sent snapshot comes after its last fragment, and instead of all that waits', () => {
    const { outbox, takeOne, takeAll, heard, sent, fates } = peer();
    outbox.offer(of('s', 4));
    takeOne();
    outbox.send(Buffer.from('answer'));
    outbox.offer(of('n'));
    outbox.finish(Buffer.from('close'), draining);
    takeAll();
    expect(heard).toEqual(['s', 'c', 'draining']);
    expect(sent).toEqual([4]);
    expect(fates).toEqual(['offered', 'offered', 'discarded']);
  });

  test('without a last message leaves the half-sent one unfinished', () => {
    const { outbox, takeOne, takeAll, heard } = peer();
    outbox.offer(of('s', 4));
    takeOne();
    outbox.finish(undefined, draining);
    takeAll();
    expect(heard).toEqual(['draining']);
  });

  test('is the last: what is sent or offered after it goes nowhere, and a second one changes nothing', () => {
    const { outbox, takeAll, heard } = peer();
    outbox.finish(Buffer.from('close'), draining);
    outbox.send(Buffer.from('answer'));
    outbox.offer(of('s'));
    outbox.finish(Buffer.from('x'), { ...draining, details: 'twice' });
    expect(outbox.waiting).toBe(0);
    takeAll();
    outbox.send(Buffer.from('late'));
    expect(outbox.waiting).toBe(0);
    expect(heard).toEqual(['c', 'draining']);
  });
});

describe('the fragment on its way', () => {
  test('is known with its time, until the peer takes it', () => {
    const { outbox, takeAll } = peer();
    expect(outbox.writingSince).toBeUndefined();
    outbox.send(Buffer.from('answer'));
    expect(outbox.writingSince).toBe(0);
    takeAll();
    expect(outbox.writingSince).toBeUndefined();
  });
});

describe('what waits', () => {
  test('is sent in order, answers before the snapshot, and of two snapshots the newer one', () => {
    const { outbox, takeAll, heard, sent, fates } = peer();
    for (const answer of ['1', '2', '3']) outbox.send(Buffer.from(answer));
    outbox.offer(of('o', 2));
    outbox.offer(of('n', 3));
    expect(outbox.waiting).toBe(2);
    takeAll();
    expect(heard).toEqual(['1', '2', '3', 'n']);
    expect(sent).toEqual([3]);
    expect(fates).toEqual(['offered', 'offered', 'superseded']);
  });

  test('is dropped once the stream is over', () => {
    const { outbox, takeOne, takeAll, heard, fates } = peer();
    outbox.offer(of('s', 3));
    takeOne();
    outbox.discard();
    takeAll();
    expect([heard, outbox.waiting]).toEqual([[], 0]);
    outbox.discard();
    expect(fates).toEqual(['offered', 'discarded']);
  });
});

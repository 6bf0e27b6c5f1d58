/**
 * A connection's stream as HTTP/2 gets it. While the connection has no session, its bytes are counted before HTTP/2
 * sees them, and it is ended as soon as they exceed what an agent sends: data that HTTP/2 has accepted from a stranger,
 * especially header lists, stays in memory until the next major collection, which an idle heap does not start.
 * `unproven.ts` handles requests that stay unanswered for too long. Implements
 * `docs/contract/agent-protocol.md#the-listener`.
 */
import { Duplex } from 'node:stream';
import { createAddressBuckets } from '../../kernel/address-buckets.js';
import type { Clock } from '../../kernel/clock.js';
import { createTokenBucket } from '../../kernel/token-bucket.js';
import type { AgentConnection } from '../listener/connection.js';
import { FrameReader } from './frame-reader.js';

/** What a connection without a session may send until a call is over. An agent sends about 1 KiB in ten frames. */
const maxHeaderBytes = 16 * 1024;
const maxFrames = 200;
/** Bytes beyond these are charged to the common budgets of its address and of all such connections. */
const ownBytes = 4 * 1024;
const ofAddress = { perSecond: 64 * 1024, burst: 512 * 1024 };
const ofAll = { perSecond: 1024 * 1024, burst: 8 * 1024 * 1024 };
const addresses = 10_000;

/** Takes bytes that a connection without a session sends beyond its own share. @returns false if none are left */
export type TakeBytes = (address: string, bytes: number) => boolean;

/** The bytes that connections without a session may send together: per address, and in all. */
export function createStrangersBytes(clock: Pick<Clock, 'monotonic'>): TakeBytes {
  const buckets = createAddressBuckets(ofAddress, addresses, clock);
  const all = createTokenBucket(ofAll.perSecond, ofAll.burst, clock.monotonic());
  return (address, bytes) => {
    const now = clock.monotonic();
    if (all.wait(now, bytes) > 0 || buckets.take(address, bytes) > 0) return false;
    all.take(now, bytes);
    return true;
  };
}

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
export class GuardedStream extends Duplex {
  readonly #inner: Duplex;
  readonly #connection: AgentConnection;
  readonly #takeBytes: TakeBytes;
  readonly #reader = new FrameReader();
  /** Bytes received since the last pardon. */
  #bytes = 0;

  /** Owns the connection's stream: ending or destroying either one ends the other. */
  constructor(connection: AgentConnection, takeBytes: TakeBytes) {
    super({ allowHalfOpen: true });
    const inner = connection.stream;
    this.#inner = inner;
    this.#connection = connection;
    this.#takeBytes = takeBytes;
    // A reset by the peer is ordinary, and may come when nobody listens any more; the event would end the process.
    this.on('error', () => undefined);
    inner.on('data', (bytes: Buffer) => this.#take(bytes));
    inner.on('end', () => this.push(null));
    inner.on('error', (error) => this.destroy(error));
    inner.on('close', () => {
      // Bytes that arrived before the end can still be read.
      if (!inner.readableEnded) this.destroy();
    });
    inner.pause();
  }

  /** A call is over, and the connection starts over. Faulty calls are counted elsewhere. */
  pardon(): void {
    this.#bytes = 0;
    this.#reader.forget();
  }

  override _read(): void {
    this.#inner.resume();
  }
  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#inner.write(bytes, done);
  }
  override _writev(chunks: { readonly chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#inner.cork();
    for (const [index, { chunk }] of chunks.entries()) {
      this.#inner.write(chunk, index === chunks.length - 1 ? done : undefined);
    }
    this.#inner.uncork();
  }
  override _final(done: () => void): void {
    // A connection lost meanwhile never emits `finish`.
    if (this.#inner.destroyed) return done();
    this.#inner.once('close', done);
    this.#inner.end(() => {
      this.#inner.off('close', done);
      done();
    });
  }
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#inner.destroy();
    done(error);
  }

  #take(bytes: Buffer): void {
    if (this.destroyed) return;
    this.#reader.read(bytes);
    if (this.#connection.hasSession) this.pardon();
    else if (!this.#has(bytes.length)) return this.#connection.endCostly();
    if (!this.push(bytes)) this.#inner.pause();
  }
  /** Whether the connection may send this many more bytes; if so, they are taken. */
  #has(bytes: number): boolean {
    const own = Math.max(this.#bytes, ownBytes);
    this.#bytes += bytes;
    const { frames, headerBytes, largeBlock } = this.#reader;
    if (largeBlock || headerBytes > maxHeaderBytes || frames > maxFrames) return false;
    return this.#bytes <= own || this.#takeBytes(this.#connection.remoteAddress, this.#bytes - own);
  }
}

/**
 * The stream of a connection as HTTP/2 gets it. While the connection has no session, its bytes are counted before HTTP/2
 * sees them, and it is ended at once when they are more than an agent sends: what HTTP/2 has taken from a stranger, header
 * lists above all, stays in memory until the next major collection, which an idle heap does not start. What waits for an
 * answer for too long is in `unproven.ts`. Implements `docs/contract/agent-protocol.md#the-listener`.
 */
import { Duplex } from 'node:stream';
import { createAddressBuckets } from '../../kernel/address-buckets.js';
import type { Clock } from '../../kernel/clock.js';
import { createTokenBucket } from '../../kernel/token-bucket.js';
import type { AgentConnection } from '../listener/connection.js';
import { FrameReader } from './frame-reader.js';

/** What a connection may send without a session, until a call of it is over. An agent sends about 1 KiB in ten frames. */
const maxHeaderBytes = 16 * 1024;
const maxFrames = 200;
/** Bytes beyond these are taken from those that all such connections of its address, and all in all, may send. */
const ownBytes = 4 * 1024;
const ofAddress = { perSecond: 64 * 1024, burst: 512 * 1024 };
const ofAll = { perSecond: 1024 * 1024, burst: 8 * 1024 * 1024 };
const addresses = 10_000;

/** Takes bytes that a connection without a session sends beyond its own. @returns false if there are none left */
export type TakeBytes = (address: string, bytes: number) => boolean;

/** What connections without a session may send together, those of one address and all. */
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

/** A class, because there is one for each agent: see `src/channel/noise/cipher-state.ts`. */
export class GuardedStream extends Duplex {
  readonly #inner: Duplex;
  readonly #connection: AgentConnection;
  readonly #takeBytes: TakeBytes;
  readonly #reader = new FrameReader();
  /** Bytes that came since the last pardon. */
  #bytes = 0;

  /** Owns the connection's stream: whoever destroys or ends the one ends the other. */
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
      // Bytes that came before the end can still be read.
      if (!inner.readableEnded) this.destroy();
    });
    inner.pause();
  }

  /** A call is over, and the connection begins anew. Those that make no sense are counted elsewhere. */
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
    // A connection that is lost meanwhile never says that it has finished.
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
  /** Whether the connection may send so many bytes more, which are then taken. */
  #has(bytes: number): boolean {
    const own = Math.max(this.#bytes, ownBytes);
    this.#bytes += bytes;
    const { frames, headerBytes, largeBlock } = this.#reader;
    if (largeBlock || headerBytes > maxHeaderBytes || frames > maxFrames) return false;
    return this.#bytes <= own || this.#takeBytes(this.#connection.remoteAddress, this.#bytes - own);
  }
}

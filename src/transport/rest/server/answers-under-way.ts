/**
 * Requests that are being answered, bounded for each connection, and their answers, which may not wait for ever. A
 * connection with 8 requests under way is not read further: its next requests wait their turn, and nothing is refused.
 * A connection that takes nothing of its answers for 30 s is ended, and while all that wait are too much together, the
 * one that holds most. `sockets.ts` bounds open connections, and `http-server.ts` what a client sends. Implements
 * `docs/contract/configuration.md#configuration`.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { plainIp } from '../../../kernel/addresses.js';
import { limits } from '../../../kernel/limits.js';
import type { SampledLog } from '../../../kernel/sampled-log.js';
import type { AnswersUnderWay } from '../deps.js';
import { tuning } from '../tuning.js';

interface AnswersOptions {
  readonly refusals: Pick<SampledLog, 'note'>;
  readonly bounds?: Partial<AnswerBounds>;
}

interface AnswerBounds {
  readonly perConnection: number;
  readonly withoutProgressMs: number;
  readonly waitingBytes: number;
}

interface Connection {
  readonly socket: Socket;
  readonly underWay: Set<ServerResponse>;
  /** Parsed from what was read before the connection was paused. */
  readonly waiting: (readonly [IncomingMessage, ServerResponse])[];
  /** Times of node's clock, in milliseconds: since when nothing was taken, and when that was last seen. */
  stalled: { readonly since: number; readonly seen: number } | undefined;
}

export function createAnswersUnderWay({ refusals, bounds = {} }: AnswersOptions): AnswersUnderWay {
  const { requestsInFlight, answerProgressMs, waitingAnswerBytes } = limits.rest;
  const perConnection = bounds.perConnection ?? requestsInFlight;
  const withoutProgressMs = bounds.withoutProgressMs ?? answerProgressMs;
  const mostWaiting = bounds.waitingBytes ?? waitingAnswerBytes;
  /** How often progress of a connection is checked: often enough to notice a stall soon. */
  const askEveryMs = withoutProgressMs / 6;
  const connections = new WeakMap<Socket, Connection>();
  const ends = new WeakMap<ServerResponse, () => void>();
  const busy = new Set<Connection>();

  const connectionOf = (socket: Socket): Connection => {
    const known = connections.get(socket);
    if (known !== undefined) return known;
    const connection: Connection = { socket, underWay: new Set(), waiting: [], stalled: undefined };
    connections.set(socket, connection);
    socket.once('close', () => {
      // Node tells only the first of several answers that its connection is gone.
      connection.underWay.clear();
      connection.waiting.length = 0;
      busy.delete(connection);
    });
    // Reading a body resumes the connection.
    socket.on('resume', () => {
      if (connection.waiting.length > 0) socket.pause();
    });
    return connection;
  };

  const begin = (
    connection: Connection,
    listener: RequestListener,
    request: IncomingMessage,
    response: ServerResponse,
  ): void => {
    connection.underWay.add(response);
    busy.add(connection);
    response.once('close', () => {
      connection.underWay.delete(response);
      if (connection.underWay.size === 0 && connection.waiting.length === 0) busy.delete(connection);
      // In a turn of its own: a thousand requests of one connection must not keep all others waiting.
      if (connection.waiting.length > 0) setImmediate(beginNext, connection, listener);
    });
    listener(request, response);
  };

  const beginNext = (connection: Connection, listener: RequestListener): void => {
    if (connection.underWay.size >= perConnection) return;
    const next = connection.waiting.shift();
    if (connection.waiting.length === 0) connection.socket.resume();
    if (next !== undefined) begin(connection, listener, ...next);
  };

  const end = ({ socket }: Connection, reason: string): void => {
    refusals.note({ reason, address: plainIp(socket.remoteAddress ?? '') }, 'a REST connection was ended');
    socket.destroy();
  };

  /** An answer that has a way to end takes it, and its own time for that; else the connection is cut. */
  const endForSize = (connection: Connection): void => {
    const [answer] = connection.underWay;
    const gently = answer === undefined ? undefined : ends.get(answer);
    if (gently === undefined) end(connection, 'rest_answers_too_large');
    else gently();
  };

  /** Node calls this when a socket has neither read nor written anything for a while, also of a write under way. */
  const onTimeout = (socket: Socket): void => {
    const connection = connections.get(socket);
    // Without a request yet: the time for its headers is bounded elsewhere.
    if (connection === undefined) return;
    if (!busy.has(connection)) {
      socket.destroy();
      return;
    }
    const now = performance.now();
    const { stalled } = connection;
    if (socket.writableLength === 0) connection.stalled = undefined;
    else if (stalled === undefined || now - stalled.seen > askEveryMs * 1.5) {
      connection.stalled = { since: now - askEveryMs, seen: now };
    } else connection.stalled = { ...stalled, seen: now };
    if (connection.stalled !== undefined && now - connection.stalled.since >= withoutProgressMs) {
      end(connection, 'rest_answer_not_taken');
    } else socket.setTimeout(askEveryMs);
  };

  const waitingIn = ({ underWay, waiting }: Connection): number => {
    let bytes = waiting.length * tuning.waitingRequestBytes;
    for (const response of underWay) bytes += response.writableLength;
    return bytes;
  };
  const waitingBytes = (): number => [...busy].reduce((sum, connection) => sum + waitingIn(connection), 0);
  const endLargest = (): void => {
    let excess = waitingBytes() - mostWaiting;
    if (excess <= 0) return;
    const largestFirst = [...busy].map((connection) => ({ connection, bytes: waitingIn(connection) }));
    largestFirst.sort((a, b) => b.bytes - a.bytes);
    for (const { connection, bytes } of largestFirst) {
      if (excess <= 0) return;
      endForSize(connection);
      excess -= bytes;
    }
  };

  return {
    inTurn: (listener) => (request, response) => {
      const connection = connectionOf(request.socket);
      if (connection.underWay.size < perConnection && connection.waiting.length === 0) {
        begin(connection, listener, request, response);
        return;
      }
      connection.waiting.push([request, response]);
      request.socket.pause();
    },
    guard(server) {
      server.setTimeout(askEveryMs, onTimeout);
      server.once('listening', () => {
        const timer = setInterval(endLargest, tuning.weighAnswersEveryMs).unref();
        server.once('close', () => clearInterval(timer));
      });
    },
    endsBy: (response, how) => void ends.set(response, how),
    waitingBytes,
  };
}

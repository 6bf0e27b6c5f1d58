/**
 * Bounds requests under way and unread answers. A connection with 8 requests under way is not read further: its next requests
 * wait, and nothing is refused. A connection whose client reads nothing for 30 s is closed, and so is the one with the most
 * unread bytes while all of them together exceed their bound. `sockets.ts` bounds open connections, `http-server.ts` what a
 * client sends. Implements `docs/contract/configuration.md#configuration`.
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
  /** Requests that were parsed before the connection was paused. */
  readonly waiting: (readonly [IncomingMessage, ServerResponse])[];
  /** Since when the client has read nothing, and when that was last checked; monotonic milliseconds. */
  stalled: { readonly since: number; readonly seen: number } | undefined;
}

/** Hands the requests of each connection to their listener, no more than `perConnection` at a time. */
function createTurns(perConnection: number) {
  const connections = new WeakMap<Socket, Connection>();
  const busy = new Set<Connection>();

  const connectionOf = (socket: Socket): Connection => {
    const known = connections.get(socket);
    if (known !== undefined) return known;
    const connection: Connection = { socket, underWay: new Set(), waiting: [], stalled: undefined };
    connections.set(socket, connection);
    socket.once('close', () => {
      connection.waiting.length = 0;
      // Node tells only the first of several answers that its connection is gone.
      for (const response of connection.underWay) {
        if (response.socket === null && !response.writableFinished) response.destroy().emit('close');
      }
      connection.underWay.clear();
      busy.delete(connection);
    });
    // Reading a body resumes the connection, so it is paused again.
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

  return {
    /** Those with an answer under way. */
    busy: busy as ReadonlySet<Connection>,
    /** Undefined before its first request. */
    find: (socket: Socket): Connection | undefined => connections.get(socket),
    inTurn:
      (listener: RequestListener): RequestListener =>
      (request, response) => {
        const connection = connectionOf(request.socket);
        if (connection.underWay.size < perConnection && connection.waiting.length === 0) {
          begin(connection, listener, request, response);
          return;
        }
        connection.waiting.push([request, response]);
        request.socket.pause();
      },
  };
}

export function createAnswersUnderWay({ refusals, bounds = {} }: AnswersOptions): AnswersUnderWay {
  const { requestsInFlight, answerProgressMs, waitingAnswerBytes } = limits.rest;
  const withoutProgressMs = bounds.withoutProgressMs ?? answerProgressMs;
  const mostWaiting = bounds.waitingBytes ?? waitingAnswerBytes;
  /** How often the progress of a connection is checked. */
  const askEveryMs = withoutProgressMs / 6;
  const ends = new WeakMap<ServerResponse, () => void>();
  const { busy, find, inTurn } = createTurns(bounds.perConnection ?? requestsInFlight);

  const end = ({ socket }: Connection, reason: string): void => {
    refusals.note({ reason, address: plainIp(socket.remoteAddress ?? '') }, 'a REST connection was ended');
    socket.destroy();
  };

  /** Lets a stream end itself, in its own time; cuts any other connection. */
  const endForSize = (connection: Connection): void => {
    const [answer] = connection.underWay;
    const gently = answer === undefined ? undefined : ends.get(answer);
    if (gently === undefined) end(connection, 'rest_answers_too_large');
    else gently();
  };

  /** Node calls this when a socket has neither read nor written anything for a while, even during a write. */
  const onTimeout = (socket: Socket): void => {
    const connection = find(socket);
    // No request yet: the time for its headers is bounded elsewhere.
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
    inTurn,
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

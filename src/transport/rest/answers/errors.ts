/**
 * Answers everything that is thrown, and every request without a route, with the envelope. The catalogue of errors is
 * `kernel/errors.ts`. Implements `docs/contract/rest.md#errors`.
 */
import type { Socket } from 'node:net';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { ServiceError, errorText } from '../../../kernel/errors.js';
import { plainIp } from '../../../kernel/addresses.js';
import type { RestApp, RestDeps } from '../deps.js';
import { OnlyPlanned } from '../../../commands/rollouts.js';
import { failure, ok } from './envelope.js';

type Logs = Pick<RestDeps, 'logger'>;

export function installErrors(app: RestApp, logs: Logs): void {
  app.setErrorHandler((error, request, reply) => answerError(error, request, reply, logs));
  // The gate refuses unknown paths first; this is a second line of defence.
  app.setNotFoundHandler((request, reply) =>
    answerError(new ServiceError('not_found', 'no such path'), request, reply, logs),
  );
}

/** Answers with the envelope. An unexpected fault is described in the log only, under the request id. */
export function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply, logs: Logs): FastifyReply {
  // The end of a dry run is not a failure.
  if (error instanceof OnlyPlanned) {
    const { waves, warnings } = error.plan;
    return reply
      .code(200)
      .header('content-type', 'application/json; charset=utf-8')
      .serializer(JSON.stringify)
      .send(ok({ waves, warnings }));
  }
  const answered = sayIfWritten(asServiceError(error), reply);
  request.failure = answered;
  if (answered.code === 'internal') logFault(error, request, logs);
  if (answered.code === 'unauthenticated') void reply.header('www-authenticate', 'Bearer');
  const { retryAfterSeconds = usualWait(answered, reply), allow } = answered.hints;
  if (retryAfterSeconds !== undefined) void reply.header('retry-after', String(Math.ceil(retryAfterSeconds)));
  if (allow !== undefined) void reply.header('allow', allow.join(', '));
  return reply
    .code(answered.httpStatus)
    .header('content-type', 'application/json; charset=utf-8')
    .serializer(JSON.stringify)
    .send(failure(answered.code, answered.message));
}

/** Stores and instances come back within seconds. A change that was written must not be repeated. */
const usualWait = ({ code }: ServiceError, reply: FastifyReply): number | undefined =>
  code === 'unavailable' && !reply.hasHeader('x-position') ? 1 : undefined;

/** The log line of the request holds everything else (`request-records.ts`). */
function logFault(error: unknown, request: FastifyRequest, { logger }: Logs): void {
  const stack = error instanceof Error ? error.stack : undefined;
  const facts = { request_id: request.id, method: request.method, route: request.routeOptions?.url ?? null };
  logger.error({ ...facts, error: errorText(error), stack }, 'request failed');
}

/** If the command was committed, the error says so: the caller must not take it for a refusal. */
function sayIfWritten(error: ServiceError, reply: FastifyReply): ServiceError {
  if (!reply.hasHeader('x-position') || (error.code !== 'unavailable' && error.code !== 'internal')) return error;
  const message = `the change was written at x-position, but the result cannot be read back: ${error.message}`;
  return new ServiceError(error.code, message, { cause: error.cause });
}

/** Errors of the service stay as they are, fastify's are translated, anything else is `internal`. */
function asServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const { code, statusCode } = (typeof error === 'object' && error !== null ? error : {}) as Partial<FastifyError>;
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new ServiceError('payload_too_large', 'body: expected a smaller body');
  }
  if (statusCode === 415) {
    return new ServiceError('unsupported_media_type', 'expected content-type application/json in UTF-8');
  }
  if (statusCode === 429) return new ServiceError('rate_limited', 'too many requests');
  if (code?.startsWith('FST_ERR_CTP') === true || code === 'ECONNRESET') {
    return new ServiceError(
      'invalid_request',
      'body: expected the length and encoding that the request headers announce',
    );
  }
  return new ServiceError('internal', "unexpected fault; the log holds the cause under this answer's x-request-id", {
    cause: error,
  });
}

const malformed: Readonly<Record<string, readonly [string, string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'expected smaller request headers'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'expected the whole request sooner'],
};

function reasonOf(code: string): 'gone' | 'rest_too_slow' | 'rest_tls' | 'rest_not_http' {
  if (code === 'ECONNRESET') return 'gone';
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'rest_too_slow';
  return /^ERR_(?:SSL|TLS)_/.test(code) ? 'rest_tls' : 'rest_not_http';
}

/** Answers bytes that are not an HTTP request, also with the envelope, on the bare socket, and closes it. */
export function answerClientError(
  error: Error & { code?: string },
  socket: Socket,
  refusals: RestDeps['refusals'],
): void {
  const reason = reasonOf(error.code ?? '');
  if (reason !== 'gone') {
    refusals.note({ reason, address: plainIp(socket.remoteAddress ?? ''), code: error.code }, 'request refused');
  }
  if (reason === 'gone' || reason === 'rest_tls' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, sentence] = malformed[error.code ?? ''] ?? ['400 Bad Request', 'expected a well-formed HTTP request'];
  const text = JSON.stringify(failure('invalid_request', sentence));
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
    // Otherwise a peer that keeps its half open would hold the socket.
    () => socket.destroy(),
  );
}

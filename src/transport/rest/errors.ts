/**
 * Turns everything that is thrown, and every request that no route takes, into the envelope. Not the catalogue
 * (`kernel/errors.ts`). Implements `docs/contract/rest.md#errors`.
 */
import type { Socket } from 'node:net';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { ServiceError, errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import type { RestApp } from './deps.js';
import { failure } from './envelope.js';

export function installErrors(app: RestApp, logger: Logger): void {
  app.setErrorHandler((error, request, reply) => answerError(error, request, reply, logger));
  // The gate refuses unknown paths; this is for what the router alone can't place.
  app.setNotFoundHandler((request, reply) =>
    answerError(new ServiceError('not_found', 'no such path'), request, reply, logger),
  );
}

/** Answers with the envelope; an unexpected fault is logged under the request id and not described. */
export function answerError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  logger: Logger,
): FastifyReply {
  const shown = afterWriting(shownError(error), reply);
  const facts = { request_id: request.id, method: request.method, route: request.routeOptions?.url ?? null };
  if (shown.code === 'internal') {
    logger.error(
      { ...facts, error: errorText(error), stack: error instanceof Error ? error.stack : undefined },
      'request failed',
    );
  } else if (shown.code === 'unavailable') {
    logger.warn(
      { ...facts, error: shown.message, cause: shown.cause === undefined ? undefined : errorText(shown.cause) },
      'request unavailable',
    );
  } else if (request.method !== 'GET') {
    logger.info(
      { ...facts, code: shown.code, error: shown.message, user_id: request.caller?.userId },
      'command refused',
    );
  }
  if (shown.code === 'unauthenticated') void reply.header('www-authenticate', 'Bearer');
  if (shown.hints.retryAfterSeconds !== undefined)
    void reply.header('retry-after', String(Math.ceil(shown.hints.retryAfterSeconds)));
  if (shown.hints.allow !== undefined) void reply.header('allow', shown.hints.allow.join(', '));
  return reply
    .code(shown.httpStatus)
    .header('content-type', 'application/json; charset=utf-8')
    .serializer(JSON.stringify)
    .send(failure(shown.code, shown.message));
}

/** A command that is in the log, but what it left can not be shown: the caller must not take it for refused. */
function afterWriting(error: ServiceError, reply: FastifyReply): ServiceError {
  if (!reply.hasHeader('x-position') || (error.code !== 'unavailable' && error.code !== 'internal')) return error;
  const message = `the change was written at x-position, but what it left can not be shown: ${error.message}`;
  return new ServiceError(error.code, message, { cause: error.cause });
}

/** Our own errors as they are; fastify's by what they mean; anything else is `internal`. */
function shownError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const { code, statusCode } = (typeof error === 'object' && error !== null ? error : {}) as Partial<FastifyError>;
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new ServiceError('payload_too_large', 'body: expected a smaller one');
  if (statusCode === 415)
    return new ServiceError('unsupported_media_type', 'expected content-type application/json in UTF-8');
  if (statusCode === 429) return new ServiceError('rate_limited', 'too many requests');
  if (code?.startsWith('FST_ERR_CTP') === true || code === 'ECONNRESET') {
    return new ServiceError('invalid_request', 'body: expected it as its headers announce it');
  }
  return new ServiceError('internal', "unexpected fault; the log holds the cause under this answer's x-request-id", {
    cause: error,
  });
}

const malformed: Readonly<Record<string, readonly [string, string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'expected smaller request headers'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'expected the whole request sooner'],
};

/** What is no HTTP never becomes a request: answered on the bare socket, in the envelope all the same. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, sentence] = malformed[error.code ?? ''] ?? ['400 Bad Request', 'expected a well-formed HTTP request'];
  const text = JSON.stringify(failure('invalid_request', sentence));
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
  );
}

/**
 * Reads bodies of at most 256 KiB: strict JSON, or nothing where a route takes no body. Does not validate them.
 * Implements `docs/contract/rest.md#envelope` and `docs/contract/rest.md#errors`.
 */
import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { ServiceError } from '../../../kernel/errors.js';
import { limits } from '../../../kernel/limits.js';
import type { RestApp } from '../deps.js';
import { unsupported } from './gate.js';
import { readJson } from './json-body.js';
import { propertyPath } from './json-path.js';
import { isJson } from './media-type.js';
import { tuning } from '../tuning.js';

const noBytes = Buffer.alloc(0);

/** Replaces fastify's parsers, which accept duplicate keys and quote the body in their errors. */
export function installBodies(app: RestApp): void {
  app.decorateRequest('bodyBytes', null);
  app.removeAllContentTypeParsers();
  // Both, because a type that is named is found without a search.
  app.addContentTypeParser(['application/json', '*'], (request: FastifyRequest, payload: Readable, done) => {
    if (Number(request.headers['content-length'] ?? 0) > tuning.drainBytes) return done(tooLarge());
    readBounded(payload, done);
  });
  app.addHook('preValidation', (request, _reply, next) => {
    if (request.method === 'GET' || request.method === 'HEAD') return next();
    const bytes = Buffer.isBuffer(request.body) ? request.body : noBytes;
    request.bodyBytes = bytes;
    request.body = request.routeOptions.config.takes === 'json' ? jsonObject(bytes) : noBody(bytes, request);
    next();
  });
}

function jsonObject(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new ServiceError('invalid_request', 'body: required, expected a JSON object');
  return readJson(bytes);
}

function noBody(bytes: Buffer, request: FastifyRequest): undefined {
  if (bytes.length === 0) return undefined;
  const type = request.headers['content-type'];
  if (type !== undefined && !isJson(type)) throw unsupported('content-type application/json in UTF-8');
  const value = readJson(bytes);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ServiceError('invalid_request', 'body: expected no body, or {}');
  }
  const [field] = Object.keys(value);
  if (field === undefined) return undefined;
  throw new ServiceError(
    'invalid_request',
    `${propertyPath([field])}: not a field of this request, expected no body, or {}`,
    { hints: { logged: 'body: expected no body, or {}' } },
  );
}

/**
 * The whole body. A body that is too large is read to its end and dropped, within a bound, before it is refused:
 * otherwise its sender would see a reset connection instead of the 413. By events, because an iterator of the stream costs
 * as much as the rest of a small request.
 * @param done called once, with ServiceError `payload_too_large` or with what broke the connection
 */
function readBounded(payload: Readable, done: (error: Error | null, body?: Buffer) => void): void {
  const chunks: Buffer[] = [];
  let length = 0;
  let settled = false;
  const settle = (error: Error | null): void => {
    if (settled) return;
    settled = true;
    if (error !== null) return done(error);
    if (length > limits.rest.bodyBytes) return done(tooLarge());
    const [only] = chunks;
    done(null, chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, length));
  };
  payload.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length <= limits.rest.bodyBytes) chunks.push(chunk);
    if (length <= tuning.drainBytes) return;
    // Read no further. The answer needs the socket, so the stream is not destroyed.
    payload.pause();
    settle(null);
  });
  payload.on('end', () => settle(null));
  payload.on('error', settle);
  payload.on('close', () => {
    if (!settled) settle(new ServiceError('invalid_request', 'body: the connection was closed before its end'));
  });
}

function tooLarge(): ServiceError {
  return new ServiceError('payload_too_large', `body: expected at most ${limits.rest.bodyBytes} bytes`);
}

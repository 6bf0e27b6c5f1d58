/**
 * Reads bodies of at most 256 KiB, or more where a route says so: strict JSON, YAML where a route takes a document, or
 * nothing where it takes no body. Does not validate them.
 * Implements `docs/contract/rest.md#envelope` and `docs/contract/rest.md#errors`.
 */
import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { ServiceError } from '../../../kernel/errors.js';
import type { JsonFault, JsonPath } from '../../../kernel/json-text.js';
import { jsonFaults } from '../../../kernel/json-text.js';
import { limits } from '../../../kernel/limits.js';
import type { RestApp } from '../deps.js';
import { tuning } from '../tuning.js';
import { isJson, isYaml, unsupportedType } from './gate.js';
import { printableKey, propertyPath } from './json-path.js';

const noBytes = Buffer.alloc(0);

/** Replaces fastify's parsers, which accept duplicate keys and quote the body in their errors. */
export function installBodies(app: RestApp): void {
  app.decorateRequest('bodyBytes', null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async (request: FastifyRequest, payload: Readable) => {
    const most = request.routeOptions.config.bodyBytes ?? limits.rest.bodyBytes;
    if (Number(request.headers['content-length'] ?? 0) > drained(most)) throw tooLarge(most);
    return readBounded(payload, most);
  });
  app.addHook('preValidation', (request, _reply, next) => {
    if (request.method === 'GET' || request.method === 'HEAD') return next();
    const bytes = Buffer.isBuffer(request.body) ? request.body : noBytes;
    request.bodyBytes = bytes;
    const { takes } = request.routeOptions.config;
    if (takes === 'document' && isYaml(request.headers['content-type'] ?? '')) request.body = { document: utf8(bytes) };
    else if (takes === 'json' || takes === 'document') request.body = jsonObject(bytes);
    else if (takes === 'optional') request.body = bytes.length === 0 ? {} : jsonObject(bytes);
    else request.body = noBody(bytes, request);
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
  if (type !== undefined && !isJson(type)) throw unsupportedType();
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
 * otherwise its sender would see a reset connection instead of the 413.
 * @throws ServiceError `payload_too_large`, or what broke the connection
 */
async function readBounded(payload: Readable, most: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  // The answer needs the socket, so the stream must not be destroyed with the loop.
  for await (const chunk of payload.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= most) chunks.push(chunk);
    if (length > drained(most)) break;
  }
  if (length > most) throw tooLarge(most);
  return Buffer.concat(chunks, length);
}

/** How much of a body that is too large is read to its end. */
const drained = (most: number): number => most + tuning.drainBytes - limits.rest.bodyBytes;

function tooLarge(most: number): ServiceError {
  return new ServiceError('payload_too_large', `body: expected at most ${most} bytes`);
}

const { depth, values, entries } = tuning.bodies;
const bodyBounds = { depth, values, entries: () => entries };

const byteOrderMark = 0xfeff;

/** The text without its byte order mark. @throws ServiceError `invalid_request` for bytes that are not UTF-8 */
function utf8(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new ServiceError('invalid_request', 'body: expected UTF-8');
  const decoded = bytes.toString('utf8');
  return decoded.charCodeAt(0) === byteOrderMark ? decoded.slice(1) : decoded;
}

/**
 * Reads a JSON text strictly: UTF-8, RFC 8259, no key twice in one object, bounded in depth and values.
 * @throws ServiceError `invalid_request` for bytes that are not UTF-8 or not JSON, that hold a key twice, or a value beyond the bounds
 */
function readJson(bytes: Buffer): unknown {
  const text = utf8(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own message quotes the text, which may hold a password.
    throw new ServiceError('invalid_request', 'body: expected well-formed JSON');
  }
  const [fault] = jsonFaults(text, bodyBounds);
  if (fault !== undefined) {
    const logged = 'body: a key that is twice in it, or that no request has, or too large a value';
    throw new ServiceError('invalid_request', faultSentence(fault), { hints: { logged } });
  }
  return value;
}

/** The path of a fault; one that is long is cut, but for its last key. */
function pathOf(at: JsonPath): string {
  const deepest = 12;
  const path = propertyPath(at.slice(0, deepest));
  const last = at[at.length - 1];
  return at.length > deepest && typeof last === 'string' ? `${path}…${printableKey(last)}` : path;
}

function faultSentence({ kind, at }: JsonFault): string {
  switch (kind) {
    case 'twice':
      return `${pathOf(at)}: expected each key once, found it twice`;
    case 'reserved':
      return `${pathOf(at)}: not a field of this request`;
    case 'too_deep':
      return `${pathOf(at)}: expected at most ${depth} objects and lists inside each other`;
    case 'too_many':
      return `${pathOf(at)}: expected at most ${values} values, and ${entries} in one list or object`;
  }
}

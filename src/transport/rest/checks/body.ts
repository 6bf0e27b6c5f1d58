/**
 * Reads bodies as strict JSON of at most 256 KiB, or as a longer fleet document in JSON or YAML where a route takes one. Does
 * not validate them. Implements `docs/contract/rest.md#envelope` and `docs/contract/rest.md#errors`.
 */
import { isUtf8 } from 'node:buffer';
import { createHash, randomUUID, type Hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { createTurns, yieldToEventLoop } from '../../../kernel/background.js';
import { ServiceError } from '../../../kernel/errors.js';
import { jsonFaults, type JsonFault, type JsonPath } from '../../../kernel/json-text.js';
import { limits } from '../../../kernel/limits.js';
import type { RestApp } from '../deps.js';
import { tuning } from '../tuning.js';
import { isJson, isYaml, unsupportedType } from './gate.js';
import { printableKey, propertyPath } from '../schemas/json-path.js';

const noBytes = Buffer.alloc(0);

/** Replaces fastify's parsers, which accept duplicate keys and quote the body in their errors. */
export function installBodies(app: RestApp): void {
  app.decorateRequest('bodyHash', null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async (request: FastifyRequest, payload: Readable) => {
    const { bodyBytes: most = limits.rest.bodyBytes, takes } = request.routeOptions.config;
    if (Number(request.headers['content-length'] ?? 0) > drained(most)) throw tooLarge(most);
    const hash = request.headers['idempotency-key'] === undefined ? undefined : createHash('sha256');
    const bytes = await readBounded(payload, most, hash);
    request.bodyHash = hash?.digest('hex') ?? null;
    return takes === 'document' && bytes.length > limits.rest.bodyBytes
      ? longDocument(bytes, isInYaml(request))
      : bytes;
  });
  app.addHook('preValidation', (request, _reply, next) => {
    if (request.method === 'GET' || request.method === 'HEAD') return next();
    const bytes = request.body ?? noBytes;
    // A long document is already parsed.
    if (!Buffer.isBuffer(bytes)) return next();
    const { takes } = request.routeOptions.config;
    if (takes === 'document' && isInYaml(request)) request.body = { document: utf8(bytes) };
    else if (takes === 'json' || takes === 'document') request.body = jsonObject(bytes);
    else if (takes === 'optional') request.body = bytes.length === 0 ? {} : jsonObject(bytes);
    else request.body = noBody(bytes, request);
    next();
  });
}

const isInYaml = ({ headers }: FastifyRequest): boolean => isYaml(headers['content-type'] ?? '');

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
 * Reads the whole body. One that is too large is drained, within a bound, before it is refused: otherwise its sender would see
 * a reset connection in place of the 413.
 * @throws ServiceError `payload_too_large`, or what broke the connection
 */
async function readBounded(payload: Readable, most: number, hash: Hash | undefined): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  // Leaving the loop must not destroy the stream: the answer needs its socket.
  for await (const chunk of payload.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= most) {
      chunks.push(chunk);
      hash?.update(chunk);
    }
    if (length > drained(most)) break;
  }
  if (length > most) throw tooLarge(most);
  return Buffer.concat(chunks, length);
}

/** The size up to which a body that is too large is drained. */
const drained = (most: number): number => most + tuning.drainBytes - limits.rest.bodyBytes;

function tooLarge(most: number): ServiceError {
  return new ServiceError('payload_too_large', `body: expected at most ${most} bytes`);
}

/**
 * Reads a body whose document is too long for one turn of the event loop.
 * @throws ServiceError `payload_too_large` when the rest of the body is too long, and as `readJson`
 */
async function longDocument(sent: Buffer, yaml: boolean): Promise<unknown> {
  await yieldToEventLoop();
  if (!isUtf8(sent)) throw notUtf8();
  const bytes = sent.subarray(sent.readUIntBE(0, 3) === 0xefbbbf ? 3 : 0);
  if (yaml) return { document: (await readSlices(bytes, 0, false)).text };
  const begin = longStringIn(bytes);
  if (begin === undefined) throw tooLargeBeside();
  const { text, end } = await readSlices(bytes, begin, true);
  // A mark stands for the document while the rest of the body is parsed.
  const mark = randomUUID();
  const envelope = [bytes.subarray(0, begin), Buffer.from(mark), bytes.subarray(end)];
  if (bytes.length - (end - begin) > limits.rest.bodyBytes) throw tooLargeBeside();
  const body = readJson(Buffer.concat(envelope));
  if ((body as { readonly document?: unknown } | null)?.document === mark)
    return { ...(body as object), document: text };
  throw new ServiceError(
    'invalid_request',
    `body: expected no text of over ${tuning.sliceBytes} bytes but the document`,
  );
}

const tooLargeBeside = (): ServiceError =>
  new ServiceError('payload_too_large', `body: expected at most ${limits.rest.bodyBytes} bytes beside the document`);

const [quote, backslash, letterU] = [0x22, 0x5c, 0x75];

/** The index after the opening quote of the first string longer than a slice; undefined if none begins early enough. */
function longStringIn(bytes: Buffer): number | undefined {
  for (let begin = bytes.indexOf(quote) + 1; begin > 0 && begin < limits.rest.bodyBytes;) {
    const end = endOfSlice(bytes, begin, true);
    if (bytes[end] !== quote) return begin;
    begin = bytes.indexOf(quote, end + 1) + 1;
  }
  return undefined;
}

/** The end of a slice that begins at an index; never inside a character, nor inside an escape sequence of a string. */
function endOfSlice(bytes: Buffer, begin: number, inString: boolean): number {
  const most = Math.min(begin + tuning.sliceBytes, bytes.length);
  let end = inString ? begin : most;
  while (end < most && bytes[end] !== quote) {
    if (bytes[end] !== backslash) end += 1;
    else end += bytes[end + 1] === letterU ? 6 : 2;
  }
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end += 1;
  return Math.min(end, bytes.length);
}

/** The text from an index to the end of its string, or of all bytes. @throws ServiceError `invalid_request` */
async function readSlices(bytes: Buffer, begin: number, inString: boolean): Promise<{ text: string; end: number }> {
  const turn = createTurns(tuning.turnMs);
  const slices: string[] = [];
  let end = begin;
  while (end < bytes.length && !(inString && bytes[end] === quote)) {
    const from = end;
    end = endOfSlice(bytes, from, inString);
    const slice = bytes.toString('utf8', from, end);
    slices.push(inString ? String(parsed(`"${slice}"`)) : slice);
    await turn();
  }
  const text = slices.join('');
  await yieldToEventLoop();
  return { text, end };
}

const { depth, values, entries } = tuning.bodies;
const bodyBounds = { depth, values, entries: () => entries };

const byteOrderMark = 0xfeff;

/** The text without its byte order mark. @throws ServiceError `invalid_request` for bytes that are not UTF-8 */
function utf8(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw notUtf8();
  const decoded = bytes.toString('utf8');
  return decoded.charCodeAt(0) === byteOrderMark ? decoded.slice(1) : decoded;
}

const notUtf8 = (): ServiceError => new ServiceError('invalid_request', 'body: expected UTF-8');

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the text, which may hold a password.
    throw new ServiceError('invalid_request', 'body: expected well-formed JSON');
  }
}

/**
 * Reads a JSON text strictly: UTF-8, RFC 8259, no key twice in one object, bounded in depth and values.
 * @throws ServiceError `invalid_request` for bytes that are not UTF-8 or not JSON, that hold a key twice, or a value beyond the bounds
 */
function readJson(bytes: Buffer): unknown {
  const text = utf8(bytes);
  const value = parsed(text);
  const [fault] = jsonFaults(text, bodyBounds);
  if (fault !== undefined) {
    const logged = 'body: a key that is twice in it, or that no request has, or too large a value';
    throw new ServiceError('invalid_request', faultSentence(fault), { hints: { logged } });
  }
  return value;
}

/** The path of a fault; a long one is cut, except for its last key. */
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

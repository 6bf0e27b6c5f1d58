/**
 * The headers for consistency: If-Match, Idempotency-Key, x-min-position and ETag. Implements
 * `docs/contract/rest.md#consistency`.
 */
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { IfMatch } from '../../../domain/resource/refusal.js';
import type { IdempotencyMark } from '../../../kernel/event.js';
import { limits } from '../../../kernel/limits.js';
import { expected, readAs } from './validation.js';
import { documented } from './documented.js';

/** An entry of a list (RFC 9110): an entity tag, which may hold a comma, or nothing. */
const listEntry = /[ \t]*(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)")?[ \t]*(?:,|$)/y;

/** @returns `*`, or the strong entity tags of a list; undefined for a malformed header */
function readTags(header: string): '*' | readonly string[] | undefined {
  if (header.trim() === '*') return '*';
  const tags: string[] = [];
  let entries = 0;
  listEntry.lastIndex = 0;
  while (listEntry.lastIndex < header.length) {
    const entry = listEntry.exec(header);
    if (entry === null) return undefined;
    const [, weak, tag] = entry;
    if (tag === undefined) continue;
    entries += 1;
    if (weak === undefined) tags.push(tag);
  }
  return entries === 0 ? undefined : tags;
}

/**
 * @returns `*`, or the versions of the entity tags; undefined for a malformed header. A weak or foreign tag is well
 * formed and matches nothing.
 */
function readIfMatch(header: string): Exclude<IfMatch, undefined> | undefined {
  const tags = readTags(header);
  if (tags === undefined || tags === '*') return tags;
  return tags.filter((tag) => /^(?:0|[1-9][0-9]{0,15})$/.test(tag)).map(Number);
}

export function etag(version: number): string {
  return `"${version}"`;
}

const entityTags = '* or entity tags such as "3"';

const ifMatch = z
  .string()
  .transform(readAs(entityTags, readIfMatch))
  .optional()
  .meta({ description: '`*`, or the `ETag` that the resource must have, else 412', examples: ['"3"'] });

const idempotencyKey = z
  .string()
  .regex(new RegExp(`^[\\x21-\\x7e]{1,${limits.rest.idempotencyKeyChars}}$`), {
    error: expected(`1 to ${limits.rest.idempotencyKeyChars} visible ASCII characters`),
  })
  .optional()
  .meta({
    description:
      'A repeat within 24 hours with the same key, caller, path and body writes nothing and gets the first status with the resource as it is now',
    examples: ['0d7c8f0a-create-edge-1'],
  });

const minPosition = z
  .string()
  .transform(
    readAs('a log position, as x-position gave it', (value: string) => {
      const position = /^[0-9]{1,16}$/.test(value) ? Number(value) : Number.NaN;
      return Number.isSafeInteger(position) ? position : undefined;
    }),
  )
  .optional()
  .meta({
    description: 'Wait until this log position is shown (2 s, else 503)',
    type: 'integer',
    minimum: 0,
    examples: [0],
  });

/** Entity tags of plans, which are not versions. */
const ifMatchPlan = z
  .string()
  // The answer of a plan has the tag without quotes.
  .transform(readAs(entityTags, (value: string) => readTags(/^[\w-]{43}$/.test(value) ? `"${value}"` : value)))
  .optional()
  .meta({
    description: 'The `etag` of the plan that is to be carried out, with quotes or without; else 412',
    examples: ['"3"'],
  });

/** Loose objects: all other headers pass. */
export const conditionalHeaders = z.looseObject({ 'if-match': ifMatch });
export const postHeaders = z.looseObject({ 'idempotency-key': idempotencyKey });
export const applyHeaders = z.looseObject({ 'if-match': ifMatchPlan, 'idempotency-key': idempotencyKey });
export const deployHeaders = z.looseObject({ 'if-match': ifMatch, 'idempotency-key': idempotencyKey });
export const readHeaders = z.looseObject({ 'x-min-position': minPosition });

/** Accepted on every request; an invalid one is replaced, never refused. */
export const everyRequestHeaders = z.looseObject({
  'x-request-id': z
    .string()
    .optional()
    .meta({
      description:
        'The correlation id of the events and log lines of this request, 1 to 128 characters of `A-Za-z0-9._:/+=@-`; another one is replaced',
      examples: ['console-7f3a'],
    }),
});

const position = z.string().regex(/^[0-9]+$/);

/** The headers that answers carry. Described here and sent where they are known. */
export const answerHeaders = {
  'x-request-id': documented(z.string(), "The request's `x-request-id`, or one that was made", 'console-7f3a'),
  'x-position': documented(position, 'The log position of the command, for `x-min-position`', '1284'),
  'x-telemetry-stale': z.literal('true').meta({
    description: 'The read store is away, so reports of nodes may be out of date; absent otherwise',
  }),
  'x-projection-lag': documented(z.literal('true'), 'The answer may lack the newest commands; absent otherwise'),
  ETag: documented(z.string().regex(/^"[0-9]+"$/), 'The version of the resource in quotes, for `If-Match`', '"3"'),
  Location: documented(z.string(), 'The path of what was created', '/api/nodes/1f0c3f5e-6d0c-4f0b-9a55-3c1f0e6b7a10'),
  Allow: z.string().meta({ description: 'The methods that the path has', examples: ['GET, POST'] }),
  'Retry-After': documented(z.string().regex(/^[0-9]+$/), 'Seconds after which to try again', '30'),
  'WWW-Authenticate': z.literal('Bearer').meta({ description: 'How to authenticate' }),
} as const;
export type AnswerHeader = keyof typeof answerHeaders;

/** Marks a POST in the log by hashes, which reveal neither key nor body. */
export function idempotencyMark(request: FastifyRequest, callerId: string): IdempotencyMark | undefined {
  const key = request.headers['idempotency-key'];
  if (request.method !== 'POST' || typeof key !== 'string') return undefined;
  return {
    key_hash: sha256(JSON.stringify([callerId, request.pathname, key])),
    body_hash: request.bodyHash ?? sha256(''),
  };
}

function sha256(data: string): string {
  return createHash('sha256').update(data).digest('hex');
}

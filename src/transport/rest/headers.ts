/**
 * The headers of consistency: If-Match, Idempotency-Key, x-min-position, and the ETag of answers. Not those of
 * authentication and CORS. Implements `docs/contract/rest.md#consistency`.
 */
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { IfMatch } from '../../domain/resource/if-match.js';
import type { IdempotencyMark } from '../../kernel/event.js';
import { limits } from '../../kernel/limits.js';
import { expected } from './validation.js';

const entityTag = /^(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/;

/**
 * @returns `*`, or the versions of the entity tags; undefined for a malformed header. A weak or foreign tag is well
 * formed and matches nothing.
 */
function readIfMatch(header: string): Exclude<IfMatch, undefined> | undefined {
  if (header.trim() === '*') return '*';
  const versions: number[] = [];
  for (const part of header.split(',')) {
    const tag = entityTag.exec(part.trim());
    if (tag === null) return undefined;
    const version = tag[2] ?? '';
    if (tag[1] === undefined && /^(?:0|[1-9][0-9]{0,15})$/.test(version)) versions.push(Number(version));
  }
  return versions;
}

export function etag(version: number): string {
  return `"${version}"`;
}

const ifMatch = z
  .string()
  .transform((value, ctx) => {
    const versions = readIfMatch(value);
    if (versions !== undefined) return versions;
    ctx.issues.push({ code: 'custom', message: 'expected * or entity tags such as "3"', input: value });
    return z.NEVER;
  })
  .optional()
  .meta({ description: '`*`, or the `ETag` that the resource must have, else 412' });

const idempotencyKey = z
  .string()
  .regex(new RegExp(`^[\\x21-\\x7e]{1,${limits.rest.idempotencyKeyChars}}$`), {
    error: expected(`1 to ${limits.rest.idempotencyKeyChars} visible ASCII characters`),
  })
  .optional()
  .meta({ description: 'A repeat within 24 hours with the same key, path and body writes nothing' });

const minPosition = z
  .string()
  .transform((value, ctx) => {
    const position = /^[0-9]{1,16}$/.test(value) ? Number(value) : Number.NaN;
    if (Number.isSafeInteger(position)) return position;
    ctx.issues.push({ code: 'custom', message: 'expected a log position, as x-position gave it', input: value });
    return z.NEVER;
  })
  .optional()
  .meta({ description: 'Wait until this log position is shown (2 s, else 503)', type: 'integer', minimum: 0 });

/** Loose objects: all other headers pass. */
export const conditionalHeaders = z.looseObject({ 'if-match': ifMatch });
export const postHeaders = z.looseObject({ 'idempotency-key': idempotencyKey });
export const deployHeaders = z.looseObject({ 'if-match': ifMatch, 'idempotency-key': idempotencyKey });
export const readHeaders = z.looseObject({ 'x-min-position': minPosition });

/** The mark of a POST in the log: hashes, from which neither key nor body can be read. */
export function idempotencyMark(request: FastifyRequest, callerId: string): IdempotencyMark | undefined {
  const key = request.headers['idempotency-key'];
  if (request.method !== 'POST' || typeof key !== 'string') return undefined;
  return {
    key_hash: sha256(JSON.stringify([callerId, request.pathname, key])),
    body_hash: sha256(request.bodyBytes ?? new Uint8Array()),
  };
}

function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

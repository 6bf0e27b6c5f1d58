/**
 * Sets our fields in a stream's metadata and leaves all others as they are: access rights, `$tb`, fields of tools.
 * Reads, merges, and writes only a difference, at the revision that was read, so that a concurrent writer's change is
 * kept. Implements `event-store.ts` (setRetention).
 */
import { BACKWARDS, END, jsonEvent, type EventData } from '@eventstore/db-client';
import { sleep } from '../../kernel/background.js';
import { ServiceError, unreachable } from '../../kernel/errors.js';
import { randomIds } from '../../kernel/ids.js';
import type { JsonObject } from '../../kernel/json.js';
import type { Logger } from '../../kernel/logger.js';
import { backoff } from '../../kernel/retry.js';
import type { Retention } from '../event-store.js';
import type { Appender } from './append.js';
import type { Connection } from './connection.js';
import { toNumber } from './events.js';
import { readStreamPage } from './read.js';

/** Attempts of a write that is repeated until it is certain; also used for fold checkpoints. */
export const harmlessTries = 5;

export interface MetadataDeps {
  readonly reading: Connection;
  readonly appender: Appender;
  readonly logger: Logger;
}

interface Stored {
  readonly revision: number | 'no_stream';
  readonly fields: JsonObject;
}

async function read(reading: Connection, stream: string): Promise<Stored> {
  const [newest] = await readStreamPage(reading, stream, { direction: BACKWARDS, fromRevision: END, maxCount: 1 });
  const event = newest?.event;
  if (event === undefined) return { revision: 'no_stream', fields: {} };
  const { data } = event;
  // The server ignores anything but an object too.
  const isObject = event.isJson && typeof data === 'object' && !Array.isArray(data) && !(data instanceof Uint8Array);
  return { revision: toNumber(event.revision), fields: isObject ? (data as JsonObject) : {} };
}

/** True for a number that parsing has changed: a soft-deleted stream has a `$tb` of 2^63-1. */
function hasUnsafeNumber(value: unknown): boolean {
  if (typeof value === 'number') return Math.abs(value) > Number.MAX_SAFE_INTEGER;
  return typeof value === 'object' && value !== null && Object.values(value).some(hasUnsafeNumber);
}

/** @throws ServiceError `unavailable` */
export async function setRetention(deps: MetadataDeps, stream: string, retention: Retention): Promise<void> {
  const { reading, appender, logger } = deps;
  const { maxAgeSeconds, maxCount } = retention;
  const ours: JsonObject = {
    ...(maxAgeSeconds === undefined ? {} : { $maxAge: maxAgeSeconds }),
    ...(maxCount === undefined ? {} : { $maxCount: maxCount }),
  };
  const target = `$$${stream}`;
  let cause = 'others keep writing it';
  for (let attempt = 1; attempt <= harmlessTries; attempt += 1) {
    if (attempt > 1) await sleep(backoff(reading.tuning.retry, attempt - 1));
    const { revision, fields } = await read(reading, target);
    if (Object.entries(ours).every(([name, value]) => fields[name] === value)) return;
    if (hasUnsafeNumber(fields)) {
      logger.warn({ stream }, 'the retention of a stream is not set: its metadata holds a number beyond 2^53');
      return;
    }
    const event = jsonEvent({ id: randomIds.next(), type: '$metadata', data: { ...fields, ...ours } }) as EventData;
    const outcome = await appender.append(target, revision, [event]);
    switch (outcome.kind) {
      case 'appended':
        return;
      case 'conflict':
        break;
      case 'refused':
        throw new ServiceError('unavailable', `The event store refuses the metadata of ${stream}: ${outcome.cause}.`);
      case 'unknown':
      case 'unavailable':
        // The next read shows whether it was written.
        cause = outcome.cause;
        break;
      default:
        unreachable(outcome);
    }
  }
  throw new ServiceError('unavailable', `The metadata of ${stream} cannot be written now: ${cause}.`);
}

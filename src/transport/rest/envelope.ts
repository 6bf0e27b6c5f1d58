/**
 * The envelope of every answer under `/api`: success, data, error. Not which errors there are (`kernel/errors.ts`) nor
 * how they are caught (`errors.ts`). Implements `docs/contract/rest.md#envelope`.
 */
import { z } from 'zod';
import type { ErrorCode } from '../../kernel/errors.js';

interface Success<T> {
  success: true;
  data: T;
  error: null;
}

interface Failure {
  success: false;
  data: null;
  error: string;
}

export function ok<T>(data: T): Success<T> {
  return { success: true, data, error: null };
}

export function failure(code: ErrorCode, sentence: string): Failure {
  return { success: false, data: null, error: `${code}: ${sentence}` };
}

function envelope<T extends z.ZodType>(data: T) {
  return z.object({ success: z.literal(true), data, error: z.null() });
}

export const failureSchema = z
  .object({
    success: z.literal(false),
    data: z.null(),
    error: z.string().meta({ description: '`<code>: <sentence>`; the sentence names the field by its JSON path' }),
  })
  .meta({ id: 'Failure', description: 'Refused, or failed' });

/** The schema of a route's success. Failures are not serialized by a schema, and follow from the route. */
export function answers<T extends z.ZodType>(data: T) {
  return { 200: envelope(data) };
}

/** As `answers`, for a route that creates. */
export function created<T extends z.ZodType>(data: T) {
  return { 201: envelope(data) };
}

export const nothing = z.object({});

interface Page<T> {
  readonly items: readonly T[];
  readonly total: number;
  readonly page: number;
  readonly page_size: number;
}

/** The schema of a paged list. */
export function pageOf<T>(item: z.ZodType<T>): z.ZodType<Page<T>> {
  return z.object({ items: z.array(item), total: z.int(), page: z.int(), page_size: z.int() });
}

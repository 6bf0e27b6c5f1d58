/**
 * The envelope of every answer under `/api`: success, data, error. Not which errors there are (`kernel/errors.ts`) nor
 * how they are caught (`errors.ts`). Implements `docs/contract/rest.md#envelope`.
 */
import { z } from 'zod';
import type { ErrorCode } from '../../kernel/errors.js';

export interface Success<T> {
  success: true;
  data: T;
  error: null;
}

export interface Failure {
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

/** The schema of a successful answer. */
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

/** The schemas of a route's answers: one success, and the failure for everything else. */
export function answers<T extends z.ZodType>(data: T) {
  return { 200: envelope(data), default: failureSchema };
}

/** As `answers`, for a route that creates. */
export function created<T extends z.ZodType>(data: T) {
  return { 201: envelope(data), default: failureSchema };
}

export const nothing = z.object({});

/** The data of a paged list. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), total: z.int(), page: z.int(), page_size: z.int() });
}

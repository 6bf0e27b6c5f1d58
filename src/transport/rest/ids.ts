/** The `{id}` of a path: malformed is the same 404 as unknown, and comes after every 400. Implements `docs/contract/rest.md`, the order of checks. */
import { z } from 'zod';
import { ServiceError } from '../../kernel/errors.js';
import { isUuid } from '../../kernel/ids.js';

export const idParams = z.object({ id: z.string().meta({ format: 'uuid' }) });

export function pathId(params: { readonly id: string }, what: string): string {
  if (!isUuid(params.id)) throw new ServiceError('not_found', `no ${what} has this id`);
  return params.id;
}

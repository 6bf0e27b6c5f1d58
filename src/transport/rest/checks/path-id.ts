/**
 * The `{id}` of a path and the 404 of a resource: a malformed id gets the same answer as an unknown one, after every
 * 400. Implements `docs/contract/rest.md#envelope`.
 */
import { z } from 'zod';
import { ServiceError } from '../../../kernel/errors.js';
import { isUuid } from '../../../kernel/ids.js';

export const idParams = z.object({
  id: z
    .string()
    .meta({ format: 'uuid', description: 'Id of the resource', examples: ['1f0c3f5e-6d0c-4f0b-9a55-3c1f0e6b7a10'] }),
});

/** @param what what the sentence calls the resource @throws ServiceError `not_found` */
export function pathId({ id }: { readonly id: string }, what: string): string {
  return orNotFound(isUuid(id) ? id : undefined, what);
}

/** The value, which is undefined when no resource has the id of the path. @throws ServiceError `not_found` */
export function orNotFound<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new ServiceError('not_found', `no ${what} has this id`);
  return value;
}

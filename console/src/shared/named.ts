/** The name of a resource that something else refers to by its id. */
import { queryOptions } from '@tanstack/react-query';
import { nameOf, readOne, type ListedType } from './api/crud.js';

export interface Named {
  readonly id: string;
  readonly name: string;
}

/** @param id empty: nothing is requested */
export const namedQuery = (type: ListedType, id: string) =>
  queryOptions({
    queryKey: [type, 'named', id],
    queryFn: async ({ signal }): Promise<Named> => ({ id, name: nameOf(await readOne(type, id, signal)) }),
    enabled: id !== '',
  });

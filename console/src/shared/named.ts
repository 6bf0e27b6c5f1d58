/** The name of a resource that something else refers to by its id. */
import { queryOptions } from '@tanstack/react-query';
import { nameOf, readOne } from './api/crud.js';

export interface Named {
  readonly id: string;
  readonly name: string;
}

/** What others refer to. */
const namedTypes = ['node', 'l4_chain', 'l4_upstream', 'credential', 'route', 'l3_network', 'user'] as const;
export type NamedType = (typeof namedTypes)[number];

/** Whether one of a type can be looked up. */
export const isNamedType = (type: string): type is NamedType => namedTypes.some((one) => one === type);

/** @param id empty: nothing is requested */
export const namedQuery = (type: NamedType, id: string) =>
  queryOptions({
    queryKey: [type, 'named', id],
    queryFn: async ({ signal }): Promise<Named> => ({ id, name: nameOf(await readOne(type, id, signal)) }),
    enabled: id !== '',
  });

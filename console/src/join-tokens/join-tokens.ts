/** Queries and commands of join tokens. The line to paste is in one answer and in no cache. */
import { queryOptions } from '@tanstack/react-query';
import { Refusal, type Schemas } from '../shared/api/client.js';
import { crud, readOne } from '../shared/api/crud.js';
import type { Machine } from './machine-state.js';

export type JoinToken = Schemas['JoinToken'];
export type CreatedJoinToken = Schemas['CreatedJoinToken'];

export const joinTokens = crud('join_token');

/** A node that a machine has made, which may be deleted by now. */
export const machineQuery = (id: string) =>
  queryOptions({
    queryKey: ['node', 'joined', id],
    queryFn: async ({ signal }): Promise<Machine> => {
      try {
        return await readOne('node', id, signal);
      } catch (error) {
        if (error instanceof Refusal && error.status === 404) return 'deleted';
        throw error;
      }
    },
    meta: { follows: ['agent'] },
  });

/** Queries and commands of API tokens. The token itself is in one answer and in no cache. */
import type { Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';

export type ApiToken = Schemas['ApiToken'];

export const tokens = crud('api_token');

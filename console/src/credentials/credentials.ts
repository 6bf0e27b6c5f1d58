/** Queries and commands of credentials. Private keys go out and never come back. */
import type { Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';

export type Credential = Schemas['Credential'];
export type Certificate = Schemas['Certificate'];

export const credentials = crud('credential');

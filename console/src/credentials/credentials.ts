/** Queries and commands of credentials. Private keys go out and never come back. */
import type { Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';

export type Credential = Schemas['Credential'];
export type Certificate = Schemas['Certificate'];

/** What uses one changes without it. */
export const credentials = crud('credential', ['l4_chain', 'l3_network']);

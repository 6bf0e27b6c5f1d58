/** Queries and commands of credentials. Private keys go out and never come back. */
import type { Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';

export type Credential = Schemas['Credential'];
export type Certificate = Schemas['Certificate'];

/** The list of what uses a credential changes without the credential. */
export const credentials = crud('credential', ['l4_chain', 'l3_network']);

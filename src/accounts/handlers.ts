/**
 * The handlers of accounts for REST, with the hashing, sealing and rate limits around them. Their rules are in
 * `src/domain/accounts`. Implements `docs/contract/rest.md#authentication-and-roles`.
 */
import type { CommandHandlers } from '../commands/handlers-port.js';
import { createUserFields } from './fields.js';
import { ownAccountHandlers } from './own-account.js';
import type { AccountHandlerOptions, AccountParts } from './parts.js';
import { createPasswordCheck } from './password-check.js';
import { signInHandlers } from './sign-in.js';
import { userHandlers } from './users.js';

export function createAccountHandlers(options: AccountHandlerOptions): CommandHandlers['accounts'] {
  const fields = createUserFields(options.keyring);
  const parts: AccountParts = { ...options, fields, passwords: createPasswordCheck({ ...options, fields }) };
  return { ...signInHandlers(parts), ...ownAccountHandlers(parts), ...userHandlers(parts) };
}

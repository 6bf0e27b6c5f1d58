/** Changes to the caller's own account. */
import { api, doneOf, type Done, type Schemas } from '../shared/api/client.js';
import type { Save } from '../shared/api/crud.js';

export type User = Schemas['User'];

export const updateAccount = ({
  values: body,
  headers: header,
}: Save<Schemas['OwnAccountChanges']>): Promise<Done<User>> =>
  doneOf(api.PUT('/api/auth/me', { params: { header }, body }));

/** The browser gets a new cookie; all other sign-ins end. */
export const changePassword = (body: Schemas['PasswordChange']): Promise<Done<unknown>> =>
  doneOf(api.PUT('/api/auth/password', { body }));

/** Queries and commands of users, as an admin. */
import { api, doneOf, type Done, type Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';

export type User = Schemas['User'];

export const users = crud('user');

export const resetPassword = (id: string, body: Schemas['PasswordReset']): Promise<Done<User>> =>
  doneOf(api.PUT('/api/auth/users/{id}/password', { params: { path: { id } }, body }));

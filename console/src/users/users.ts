/** Queries and commands of users, as an admin. */
import { api, doneOf, randomHex, type Done, type Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';

export type User = Schemas['User'];

type ResetUser = User & { readonly join_tokens_deleted: number };

export const users = crud('user');

export const resetPassword = (id: string, body: Schemas['PasswordReset']): Promise<Done<ResetUser>> =>
  doneOf(api.PUT('/api/auth/users/{id}/password', { params: { path: { id } }, body }));

/** Sets a password that nobody knows. @throws Refusal */
export const shutOut = (id: string): Promise<Done<ResetUser>> => resetPassword(id, { new_password: randomHex(16) });

/**
 * Lets one adapter of the process at a time use the batch path of appends. The client package keeps the batch appends
 * of all its clients in one table, where the failure of one rejects the others, and later answers throw outside of any
 * promise. Other adapters use the classic call, which shares nothing and is slower.
 */
import type { StoreAddress, User } from './address.js';

let owner: symbol | undefined;

export interface BatchPath {
  /** True while this adapter owns it. */
  owned(): boolean;
  release(): void;
}

export function claimBatchPath(): BatchPath {
  const me = Symbol('owner of the batch path');
  owner ??= me;
  return {
    owned: () => owner === me,
    release() {
      if (owner === me) owner = undefined;
    },
  };
}

/**
 * Credentials of a call of its own, with which the client uses the classic call; without TLS it does not send them.
 * Undefined when there is no user name, only a certificate: then there is only the batch path.
 */
export const classicCredentials = ({ user, tls }: StoreAddress): User | undefined =>
  user ?? (tls ? undefined : { username: 'none', password: 'none' });

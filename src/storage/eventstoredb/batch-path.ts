/**
 * Lets one adapter of the process at a time use the batch path of appends. The client package keeps the batch appends
 * of all its clients in one table, where the failure of one rejects the others, and later answers throw outside of any
 * promise. Other adapters use the classic call, which shares nothing and is slower.
 */
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
 * Credentials, taken from the URL. The client uses the classic call when a call has credentials of its own; without TLS
 * it does not send them.
 */
export function classicCredentials(url: string): { readonly username: string; readonly password: string } | undefined {
  const [, username, password] = /^esdb(?:\+discover)?:\/\/([^:@/]*):([^@/]*)@/.exec(url) ?? [];
  if (username !== undefined && password !== undefined) {
    return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
  }
  return /[?&]tls=false/i.test(url) ? { username: 'none', password: 'none' } : undefined;
}

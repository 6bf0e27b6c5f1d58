/**
 * Who may use the batch path of appends: one adapter of the process at a time. The client package keeps the batch appends
 * of all its clients in one table, where the failure of one rejects those of the others, and the late answers then throw
 * outside of any promise. Further adapters append by the classic call, which shares nothing and is slower.
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

/** What makes the client take the classic call: credentials of the call, those of the URL. They are not sent without TLS. */
export function classicCredentials(url: string): { readonly username: string; readonly password: string } | undefined {
  const [, username, password] = /^esdb(?:\+discover)?:\/\/([^:@/]*):([^@/]*)@/.exec(url) ?? [];
  if (username !== undefined && password !== undefined) {
    return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
  }
  return /[?&]tls=false/i.test(url) ? { username: 'none', password: 'none' } : undefined;
}

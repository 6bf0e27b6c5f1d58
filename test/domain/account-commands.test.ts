/** Commands about users: what they write, and when they are refused. */
import { describe, expect, it } from 'vitest';
import type { Accounts } from '../../src/domain/accounts/accounts.js';
import { applyAccounts, decideAccounts, emptyAccounts, userByName } from '../../src/domain/accounts/accounts.js';
import type { AccountCommand, AccountEvent } from '../../src/domain/accounts/user.js';
import type { RefusalCode } from '../../src/domain/resource/refusal.js';
import type { RecordedEvent } from '../../src/kernel/event.js';
import { streams } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { canonicalJson } from '../../src/kernel/json.js';
import { sealed } from '../support/fleet.js';

const id = uuidFromName('user admin');
const fields = { username: 'admin', role: 'admin', display_name: null, email: null, password: sealed } as const;
const create: AccountCommand = { type: 'CreateUser', id, ...fields, onlyIfFirst: false };
const reset = { type: 'ChangeUserPassword', ifMatch: undefined, replaces: null } as const;
const other = { ...sealed, ct: 'b3RoZXI' };

function apply(accounts: Accounts, events: readonly AccountEvent[]): void {
  for (const { type, data } of events) {
    const revision = accounts.revision.value + 1;
    const event: RecordedEvent = {
      id: uuidFromName(`account event ${revision}`),
      stream: streams.accounts,
      type,
      data: data as unknown as JsonObject,
      revision,
      position: revision + 1,
      metadata: {
        command: { id: uuidFromName(`account command ${revision}`), index: 0, count: 1 },
        actor: { type: 'system', id: 'test', name: 'test' },
        request_id: 'test',
        occurred_at: new Date(revision * 1000).toISOString(),
        schema_version: 1,
      },
    };
    applyAccounts(accounts, { stream: streams.accounts, events: [event] });
  }
}

function accountsAfter(...commands: readonly AccountCommand[]): Accounts {
  const accounts = emptyAccounts();
  for (const command of commands) {
    const decision = decideAccounts(accounts, command);
    if (!decision.ok) throw new Error(decision.error.message);
    apply(accounts, decision.value);
  }
  return accounts;
}

function expectRefused(accounts: Accounts, command: AccountCommand, code: RefusalCode, part: string): void {
  const decision = decideAccounts(accounts, command);
  expect(decision).toMatchObject({ ok: false, error: { code } });
  expect(decision.ok ? '' : decision.error.message).toContain(part);
}

describe('users', () => {
  it('have unique names and are found by them in any case', () => {
    expect(decideAccounts(emptyAccounts(), create)).toEqual({
      ok: true,
      value: [{ type: 'UserCreated', data: { user_id: id, ...fields } }],
    });
    const accounts = accountsAfter(create);
    expect(userByName(accounts, 'ADMIN')).toMatchObject({ id, version: 1, token_version: 1 });
    expectRefused(accounts, { ...create, id: uuidFromName('second') }, 'conflict', 'username: "admin"');
  });

  it('include a first admin only once, even if several instances create it', () => {
    const first: AccountCommand = { ...create, onlyIfFirst: true };
    const accounts = accountsAfter(first);
    expect(decideAccounts(accounts, { ...first, id: uuidFromName('elsewhere') })).toEqual({ ok: true, value: [] });
  });

  it('get a new token version with a new password', () => {
    const accounts = accountsAfter(create, { ...reset, id, password: other });
    expect(accounts.users.get(id)).toMatchObject({ password: other, token_version: 2, version: 2 });
    expectRefused(emptyAccounts(), { ...reset, id, password: other }, 'not_found', id);
  });

  it('write the changed fields of a profile edit, unless If-Match does not match', () => {
    const accounts = accountsAfter(create);
    const edit = { type: 'UpdateUserProfile', id, ifMatch: undefined, email: other } as const;
    expect(decideAccounts(accounts, edit)).toEqual({
      ok: true,
      value: [{ type: 'UserProfileUpdated', data: { user_id: id, changes: { email: { from: null, to: other } } } }],
    });
    expect(decideAccounts(accounts, { ...edit, email: null, display_name: null })).toEqual({ ok: true, value: [] });
    expectRefused(accounts, { ...edit, ifMatch: [2] }, 'precondition_failed', 'If-Match');
    expectRefused(emptyAccounts(), edit, 'not_found', id);
  });

  it('are rolled back with their names', () => {
    const accounts = accountsAfter(create);
    const mark = accounts.journal.mark();
    const dump = (): string =>
      canonicalJson([[...accounts.users.entries()], [...accounts.names.entries()], accounts.revision.value]);
    const before = dump();
    const second: AccountCommand = { ...create, id: uuidFromName('second'), username: 'second' };
    const decision = decideAccounts(accounts, second);
    apply(accounts, decision.ok ? decision.value : []);
    expect(userByName(accounts, 'second')).toBeDefined();
    accounts.journal.rollback(mark);
    expect(dump()).toBe(before);
  });
});

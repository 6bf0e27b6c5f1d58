/** Commands about users: what they write, and when they are refused. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { draftOf } from '../../src/domain/aggregate/containers.js';
import {
  applyAccounts,
  decideAccounts,
  emptyAccounts,
  userByName,
  type Accounts,
} from '../../src/domain/accounts/accounts.js';
import { accountEvents, type AccountCommand, type AccountEvent } from '../../src/domain/accounts/declaration.js';
import { canonicalUsername, isPassword } from '../../src/domain/accounts/user.js';
import type { RefusalCode } from '../../src/domain/resource/refusal.js';
import { streams, type RecordedEvent } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { canonicalJson, type JsonObject } from '../../src/kernel/json.js';
import { sealed } from '../support/fleet.js';

const id = uuidFromName('user admin');
const fields = { username: 'admin', role: 'admin', display_name: null, email: null, password: sealed } as const;
const create: AccountCommand = { type: 'CreateUser', id, ...fields, onlyIfFirst: false };
const reset = { type: 'ChangeUserPassword', ifMatch: undefined, replaces: null } as const;
const other = { ...sealed, ct: 'b3RoZXI' };

const eventId = (revision: number): string => uuidFromName(`account event ${revision}`);

function apply(accounts: Accounts, events: readonly AccountEvent[]): void {
  for (const { type, data } of events) {
    const revision = accounts.revision.value + 1;
    const event: RecordedEvent = {
      id: eventId(revision),
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

describe('a user name', () => {
  it('is lowered first, then 2 to 64 of a-z, 0-9, ".", "_" and "-"', () => {
    const letters = 'abcxyzABCXYZ019._-'.split('');
    const good = fc.array(fc.constantFrom(...letters), { minLength: 2, maxLength: 64 });
    fc.assert(
      fc.property(good, (chosen) => {
        const name = chosen.join('');
        expect(canonicalUsername(name)).toBe(name.toLowerCase());
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 70 }), (text) => {
        const name = canonicalUsername(text);
        if (name === undefined) expect(/^[A-Za-z0-9._-]{2,64}$/.test(text)).toBe(false);
        else expect([canonicalUsername(name), /^[a-z0-9._-]{2,64}$/.test(name)]).toEqual([name, true]);
      }),
    );
    for (const bad of ['', 'a', 'a'.repeat(65), 'a b', 'ab\n', 'é-user', 'a/b', 'İstanbul']) {
      expect([bad, canonicalUsername(bad)]).toEqual([bad, undefined]);
    }
    // The Kelvin sign is a k when lowered.
    expect(canonicalUsername('\u212Aa')).toBe('ka');
  });
});

describe('a password', () => {
  it('has 12 to 256 characters, however many units or bytes they take', () => {
    for (const unit of ['a', 'é', '字', '𝔭', '\0']) {
      const long = (count: number): boolean => isPassword(unit.repeat(count));
      expect([11, 12, 256, 257].map(long)).toEqual([false, true, true, false]);
    }
    expect(isPassword('')).toBe(false);
  });
});

describe('users', () => {
  it('have unique names and are found by them in any case', () => {
    expect(decideAccounts(emptyAccounts(), create)).toEqual({
      ok: true,
      value: [{ type: 'UserCreated', data: { user_id: id, ...fields } }],
    });
    const accounts = accountsAfter(create);
    expect(userByName(accounts, 'ADMIN')).toMatchObject({ id, version: 1 });
    expectRefused(accounts, { ...create, id: uuidFromName('second') }, 'conflict', 'username: "admin"');
  });

  it('include a first admin only once, even if several instances create it', () => {
    const first: AccountCommand = { ...create, onlyIfFirst: true };
    const accounts = accountsAfter(first);
    expect(decideAccounts(accounts, { ...first, id: uuidFromName('elsewhere') })).toEqual({ ok: true, value: [] });
  });

  it('get a new token version with a new password: the id of its event, which no other course of the log repeats', () => {
    const accounts = accountsAfter(create, { ...reset, id, password: other });
    const token_version = eventId(1);
    expect(accounts.users.get(id)).toMatchObject({ password: other, version: 2, token_version });
    expect(accountsAfter(create).users.get(id)).toMatchObject({ token_version: eventId(0) });
    expectRefused(emptyAccounts(), { ...reset, id, password: other }, 'not_found', id);
  });

  it('get a new password only in place of the one that the caller has proved to know', () => {
    const accounts = accountsAfter(create);
    const change: AccountCommand = { type: 'ChangeUserPassword', id, ifMatch: [1], password: other, replaces: sealed };
    const event = { type: 'UserPasswordChanged', data: { user_id: id, password: other } };
    expect(decideAccounts(accounts, change)).toEqual({ ok: true, value: [event] });
    expectRefused(accounts, { ...change, ifMatch: [2] }, 'precondition_failed', 'If-Match');
    expectRefused(accounts, { ...change, replaces: other }, 'invalid_request', 'current_password: ');
    // The precondition comes before what the body says.
    expectRefused(accounts, { ...change, ifMatch: [2], replaces: other }, 'precondition_failed', 'If-Match');
    const changed = accountsAfter(create, change);
    expectRefused(changed, { ...change, ifMatch: undefined }, 'invalid_request', 'current_password: ');
  });

  it('keep their tokens when the same password is stored under a stronger hash, unless it was changed meanwhile', () => {
    const rehash: AccountCommand = { type: 'RehashUserPassword', id, password: other, replaces: sealed };
    expect(accountsAfter(create, rehash).users.get(id)).toMatchObject({
      password: other,
      token_version: eventId(0),
      version: 2,
    });
    expect(decideAccounts(accountsAfter(create, rehash), rehash)).toEqual({ ok: true, value: [] });
    expect(decideAccounts(emptyAccounts(), rehash)).toEqual({ ok: true, value: [] });
  });

  it('are shown in the audit with the names of their fields, and no value that is sealed', () => {
    const audit = (given: Partial<typeof fields>) => {
      const data = { user_id: id, ...fields, ...given };
      return accountEvents.UserCreated.audit({ type: 'UserCreated', data });
    };
    const named = (changes: readonly { readonly path: string; readonly after: unknown }[]) =>
      changes.map(({ path, after }) => [path, after]);
    const always = [
      ['username', 'admin'],
      ['role', 'admin'],
      ['password', '***'],
    ];
    expect(named(audit({}).changes)).toEqual(always);
    expect(named(audit({ email: sealed } as object).changes)).toEqual([...always, ['email', '***']]);
    const both = { email: sealed, display_name: other } as object;
    expect(named(audit(both).changes)).toEqual([...always, ['display_name', '***'], ['email', '***']]);
    expect(audit({}).notRevertibleBecause).toBe('users are not deleted');
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

  it('are forgotten with their names when a draft is dropped, and kept when it is merged', () => {
    const accounts = accountsAfter(create);
    const draft = draftOf(accounts);
    const dump = (): string =>
      canonicalJson([[...accounts.users.entries()], [...accounts.names.entries()], accounts.revision.value]);
    const before = dump();
    const second: AccountCommand = { ...create, id: uuidFromName('second'), username: 'second' };
    const decision = decideAccounts(draft.state, second);
    const applySecond = (): void => {
      apply(draft.state, decision.ok ? decision.value : []);
      expect(userByName(draft.state, 'second')).toBeDefined();
      expect(dump()).toBe(before);
    };
    applySecond();
    draft.drop();
    expect(userByName(draft.state, 'second')).toBeUndefined();
    applySecond();
    draft.merge();
    expect(userByName(accounts, 'second')).toBeDefined();
  });
});

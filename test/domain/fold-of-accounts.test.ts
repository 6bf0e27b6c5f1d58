/** The fold of the accounts, including logs that no decision of this release writes. */
import { describe, expect, it } from 'vitest';
import { applyAccounts, emptyAccounts, userByName, type Accounts } from '../../src/domain/accounts/accounts.js';
import { accountEvent, type AccountEvent } from '../../src/domain/accounts/declaration.js';
import { signinEvent } from '../../src/domain/accounts/signin.js';
import { streams, type RecordedEvent } from '../../src/kernel/event.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { sealed } from '../support/fleet.js';

const password = (ct: string) => ({ ...sealed, ct });
const created = (user_id: string, username: string): AccountEvent => ({
  type: 'UserCreated',
  data: { user_id, username, role: 'viewer', display_name: null, email: null, password: password(user_id) },
});

function recorded(type: string, data: object, revision: number, stream: string = streams.accounts): RecordedEvent {
  return {
    id: `event ${revision}`,
    stream,
    type,
    data: data as JsonObject,
    revision,
    position: 10 * (revision + 1),
    metadata: {
      command: { id: `command ${revision}`, index: 0, count: 1 },
      actor: { type: 'system', id: 'test', name: 'test' },
      request_id: 'test',
      occurred_at: new Date(revision * 1000).toISOString(),
      schema_version: 1,
    },
  };
}

/** Applies events, each as a command of its own. @returns those that the fold ignored */
function apply(accounts: Accounts, ...events: readonly { readonly type: string; readonly data: object }[]) {
  return events.flatMap(({ type, data }) => {
    const event = recorded(type, data, accounts.revision.value + 1);
    return applyAccounts(accounts, { stream: streams.accounts, events: [event] });
  });
}

const usersIn = ({ users }: Accounts) => [...users.entries()].map(([, user]) => user);

describe('the fold of the accounts', () => {
  it('begins before the first event, with nobody', () => {
    const accounts = emptyAccounts();
    expect([accounts.revision.value, accounts.position.value, usersIn(accounts)]).toEqual([-1, 0, []]);
    expect(userByName(accounts, 'nobody')).toBeUndefined();
  });

  it('has a user after the creation, and reports nothing as ignored', () => {
    const accounts = emptyAccounts();
    expect(apply(accounts, created('one', 'first'), created('two', 'second'))).toEqual([]);
    expect([accounts.revision.value, accounts.position.value]).toEqual([1, 20]);
    expect(userByName(accounts, 'Second')).toMatchObject({ id: 'two', version: 1, token_version: 'event 1' });
  });

  it.each([
    ['a user who exists, under another name', created('one', 'other')],
    ['a name that is taken, for another user', created('other', 'first')],
    ['both', created('one', 'first')],
  ])('ignores the creation of %s, and reports it', (_, event) => {
    const accounts = emptyAccounts();
    apply(accounts, created('one', 'first'), {
      type: 'UserPasswordChanged',
      data: { user_id: 'one', password: sealed },
    });
    const before = usersIn(accounts);
    expect(apply(accounts, event)).toMatchObject([{ type: 'UserCreated', revision: 2 }]);
    expect(usersIn(accounts)).toEqual(before);
    expect([...accounts.names.entries()]).toEqual([['first', 'one']]);
  });

  it.each([
    { type: 'UserPasswordChanged', data: { user_id: 'nobody', password: sealed } },
    { type: 'UserProfileUpdated', data: { user_id: 'nobody', changes: { email: { from: null, to: sealed } } } },
  ])('ignores $type of a user who does not exist', (event) => {
    const accounts = emptyAccounts();
    expect(apply(accounts, event)).toEqual([]);
    expect([usersIn(accounts), [...accounts.names.entries()], accounts.revision.value]).toEqual([[], [], 0]);
  });

  it('takes events of the log chain for what they are: the place moves on, and no user comes of them', () => {
    const accounts = emptyAccounts();
    expect(apply(accounts, { type: 'LogHeadsRecorded', data: { heads: [] } })).toEqual([]);
    expect([usersIn(accounts), accounts.revision.value, accounts.position.value]).toEqual([[], 0, 10]);
  });

  it('changes one field of a profile and leaves the other', () => {
    const accounts = emptyAccounts();
    const change = (field: string, to: object | null) => ({
      type: 'UserProfileUpdated',
      data: { user_id: 'one', changes: { [field]: { from: null, to } } },
    });
    apply(
      accounts,
      created('one', 'first'),
      change('email', password('mail')),
      change('display_name', password('name')),
    );
    expect(usersIn(accounts)).toMatchObject([{ email: password('mail'), display_name: password('name'), version: 3 }]);
    apply(accounts, change('display_name', null));
    expect(usersIn(accounts)).toMatchObject([{ email: password('mail'), display_name: null }]);
  });

  it('of events of another stream is refused', () => {
    const of = (stream: string) => recorded('UserCreated', {}, 3, stream);
    expect(() => accountEvent(of(streams.fleet))).toThrow('svc-fleet@3 is no event of svc-accounts');
    expect(() => signinEvent(of(streams.accounts))).toThrow('svc-accounts@3 is no event of svc-signins');
    expect(signinEvent(of(streams.signins))).toMatchObject({ revision: 3 });
  });
});

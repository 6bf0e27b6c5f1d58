/** `docs/contract/domain.md#audit-and-revert`: reverts of edits of a profile, whose values no sentence shows. */
import { describe, expect, it } from 'vitest';
import { applyAccounts, decideAccounts, emptyAccounts, type Accounts } from '../../src/domain/accounts/accounts.js';
import { changedFields } from '../../src/domain/accounts/revert.js';
import type { AccountCommand, AccountEvent } from '../../src/domain/accounts/declaration.js';
import { streams, type RecordedCommand } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { sealed } from '../support/fleet.js';

const id = uuidFromName('user anna');
const value = (name: string) => ({ ...sealed, ct: name });

function commandOf(accounts: Accounts, event: AccountEvent, revertOf?: string): RecordedCommand {
  const revision = accounts.revision.value + 1;
  return {
    stream: streams.accounts,
    events: [
      {
        id: uuidFromName(`account event ${revision}`),
        stream: streams.accounts,
        type: event.type,
        data: JSON.parse(JSON.stringify(event.data)) as JsonObject,
        revision,
        position: revision + 1,
        metadata: {
          command: { id: uuidFromName(`account command ${revision}`), index: 0, count: 1 },
          actor: { type: 'user', id, name: 'anna' },
          request_id: 'test',
          occurred_at: new Date(revision * 1000).toISOString(),
          schema_version: 1,
          ...(revertOf === undefined ? {} : { revert_of: revertOf }),
        },
      },
    ],
  };
}

const idOf = ({ events: [first] }: RecordedCommand): string => first.metadata.command.id;

/** A user with a name, an address and a password. */
function profile() {
  const accounts = emptyAccounts();
  function write(command: AccountCommand, revertOf?: string): RecordedCommand {
    const decision = decideAccounts(accounts, command);
    if (!decision.ok) throw new Error(decision.error.message);
    const [event] = decision.value;
    if (event === undefined) throw new Error(`${command.type} wrote nothing`);
    const recorded = commandOf(accounts, event, revertOf);
    applyAccounts(accounts, recorded);
    return recorded;
  }
  const created = write({
    type: 'CreateUser',
    id,
    username: 'anna',
    role: 'operator',
    display_name: value('Anna'),
    email: null,
    password: sealed,
    onlyIfFirst: false,
  });
  const revertOf = (entry: RecordedCommand, changedBy: ReadonlyMap<string, string> = new Map()) =>
    ({ type: 'RevertUserProfile', entry, changedBy }) as const;
  return {
    accounts,
    created,
    write,
    edit: (fields: Pick<Extract<AccountCommand, { type: 'UpdateUserProfile' }>, 'display_name' | 'email'>) =>
      write({ type: 'UpdateUserProfile', id, ifMatch: undefined, ...fields }),
    undo: (entry: RecordedCommand) => write(revertOf(entry), idOf(entry)),
    refused(entry: RecordedCommand, sentence: string, changedBy?: ReadonlyMap<string, string>): void {
      const decision = decideAccounts(accounts, revertOf(entry, changedBy));
      expect(decision).toEqual({ ok: false, error: { code: 'conflict', message: sentence } });
    },
  };
}

describe('the revert of an edit of a profile', () => {
  it.each([
    { edited: { display_name: value('Anne') } },
    { edited: { email: value('anna@a.example') } },
    { edited: { display_name: null, email: value('anna@a.example') } },
  ])('sets back only the fields that it changed: $edited', ({ edited }) => {
    const { accounts, edit, undo } = profile();
    const entry = edit(edited);
    const undone = undo(entry);
    expect(Object.keys(undone.events[0].data['changes'] as object)).toEqual(Object.keys(edited));
    expect(accounts.users.get(id)).toMatchObject({ display_name: value('Anna'), email: null, version: 3 });
    undo(undone);
    expect(accounts.users.get(id)).toMatchObject({ display_name: value('Anna'), email: null, ...edited, version: 4 });
  });

  it('keeps later work on the other field', () => {
    const { accounts, edit, undo } = profile();
    const entry = edit({ display_name: value('Anne') });
    edit({ email: value('anna@a.example') });
    undo(entry);
    expect(accounts.users.get(id)).toMatchObject({ display_name: value('Anna'), email: value('anna@a.example') });
  });

  it('is refused while another one stands', () => {
    const { edit, undo, refused } = profile();
    const entry = edit({ email: value('one') });
    const undone = undo(entry);
    refused(entry, `the entry was reverted by the entry ${idOf(undone)}; revert that one instead`);
    undo(undone);
    const again = undo(entry);
    refused(entry, `the entry was reverted by the entry ${idOf(again)}; revert that one instead`);
  });

  it('is refused when a field was changed since, without its value', () => {
    const { accounts, edit, refused } = profile();
    const entry = edit({ display_name: value('Anne'), email: value('one') });
    const later = edit({ email: value('two') });
    refused(entry, 'email: changed since');
    refused(entry, `email: changed since by the entry ${idOf(later)}`, new Map([['email', idOf(later)]]));
    edit({ display_name: null });
    refused(
      entry,
      `display_name: changed since. email: changed since by the entry ${idOf(later)}`,
      new Map([['email', idOf(later)]]),
    );
    const user = accounts.users.get(id);
    if (user === undefined) throw new Error('the user is gone');
    const of = (to: ReturnType<typeof value> | null) => ({ from: value('before'), to });
    expect(changedFields(user, {})).toEqual([]);
    expect(changedFields(user, { display_name: of(null), email: of(value('two')) })).toEqual([]);
    expect(changedFields(user, { email: of(null) })).toEqual(['email']);
  });

  it('is refused for users and passwords, and when the user is gone', () => {
    const { created, write, edit, refused } = profile();
    const reset = { type: 'ChangeUserPassword', id, ifMatch: undefined, replaces: null } as const;
    refused(created, 'the entry cannot be reverted: users are not deleted');
    const changed = write({ ...reset, password: value('other') });
    refused(changed, 'the entry cannot be reverted: a password can be replaced, not taken back');
    const entry = edit({ email: value('one') });
    const gone = decideAccounts(emptyAccounts(), { type: 'RevertUserProfile', entry, changedBy: new Map() });
    expect(gone).toEqual({ ok: false, error: { code: 'conflict', message: `the user ${id} is gone` } });
  });
});

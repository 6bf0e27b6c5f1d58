/** Sign-in, tokens and the caller's own account (`docs/contract/rest.md#authentication-and-roles`). */
import { hash } from '@node-rs/argon2';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { userField } from '../../src/accounts/fields.js';
import { openAccounts, type CommittedAccounts } from '../../src/projections/accounts.js';
import { emptyAccounts } from '../../src/domain/accounts/accounts.js';
import { accountEvent, type AccountCommand, type AccountEvent } from '../../src/domain/accounts/declaration.js';
import type { SealedSecret } from '../../src/domain/secret/sealed.js';
import { streams } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { Keyring } from '../../src/security/keyring.js';
import { createPasswordHasher, type PasswordHasher } from '../../src/security/passwords.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { startAccounts, type AccountsInstance } from '../support/accounts-fixture.js';
import { linked } from '../support/log-chain.js';
import { clearTextIn } from '../support/clear-text.js';
import { actor, createCommandFixture, refusalOf, type CommandFixture } from '../support/command-fixture.js';
import { until } from '../support/delivery-fixture.js';
import { plainPasswords } from '../support/rest-fixture.js';
import { storesInMemory } from '../support/stores-in-memory.js';

const password = 'correct horse battery';
const wrong = 'wrong horse battery';
const address = '192.0.2.1';
const context = { actor, requestId: 'r' };
const reset = { type: 'ChangeUserPassword', ifMatch: undefined, replaces: null } as const;

/** Argon2id takes longer than most of a test: those that look at hashes take the real one. */
let makeHasher = (): PasswordHasher => plainPasswords;
const start = (overrides: Parameters<typeof startAccounts>[1] = {}, on = fixture): Promise<AccountsInstance> =>
  startAccounts(on, { hasher: makeHasher(), ...overrides });

let fixture: CommandFixture;
let accounts: AccountsInstance;
/** Errors of the accounts, as one text each. */
let logged: string[];

beforeEach(async () => {
  fixture = await createCommandFixture(storesInMemory());
  logged = [];
  const error = (fields: object, message: string) => void logged.push(`${JSON.stringify(fields)} ${message}`);
  accounts = await start({ logger: { ...silentLogger, error } });
  await accounts.firstAdmin(fixture.stores.folder, password);
});
afterEach(async () => {
  await accounts.close();
  await fixture.close();
});

const login = (given = password, name = 'admin', from = address) => accounts.handlers.login(name, given, from, 'r');
const userId = (): string => [...accounts.view.accounts.users.ids()][0] ?? '';
const changePassword = async (to: string, of = accounts): Promise<void> => {
  const hashed = await accounts.hasher.hash(to);
  if (hashed.kind !== 'hashed') throw new Error(hashed.kind);
  const sealed = await accounts.keyring.seal(Buffer.from(hashed.phc), userField(userId(), 'password'));
  const command: AccountCommand = { ...reset, id: userId(), password: sealed };
  await of.gateway.execute(command, context, () => undefined);
};

test('an unknown name costs the opening of a sealed hash, as a known one does', async () => {
  const open = vi.spyOn(accounts.keyring, 'open');
  await refusalOf(login(wrong));
  const ofKnown = open.mock.calls.length;
  await refusalOf(login(password, 'nobody'));
  expect([ofKnown, open.mock.calls.length - ofKnown]).toEqual([1, 1]);
  expect(open.mock.results.map(({ value }) => value.kind)).toEqual(['opened', 'opened']);
});

test('sign-ins are recorded as facts, without the name and password that were typed', async () => {
  await login();
  await refusalOf(login(wrong));
  await refusalOf(login(password, 'hunter2-typed-into-the-wrong-field'));
  await accounts.facts.close();
  const log = await fixture.log(streams.signins);
  expect(log.map(({ type, data }) => [type, data])).toEqual([
    ['SignedIn', { user_id: userId(), username: 'admin', address }],
    ['SignInRefused', { user_id: userId(), username: 'admin', address }],
    ['SignInRefused', { user_id: null, username: null, address }],
  ]);
  expect(clearTextIn(log, [password, wrong, 'hunter2-typed-into-the-wrong-field'])).toEqual([]);
});

test('a password change ends every older token, and gives one that counts where it has not been read yet', async () => {
  const other = await start();
  try {
    const { token } = await login();
    expect(await other.handlers.authenticate(token, address)).toMatchObject({ username: 'admin' });
    await changePassword('another horse battery');
    expect(await accounts.handlers.authenticate(token, address)).toBeUndefined();
    expect(await other.handlers.authenticate(token, address), 'whatever it had read').toBeUndefined();
    expect((await refusalOf(login())).code).toBe('unauthenticated');
    const { token: newer } = await login('another horse battery');
    expect(await other.handlers.authenticate(newer, address)).toMatchObject({ username: 'admin' });
  } finally {
    await other.close();
  }
});

test('a token for a user or a password that this instance has not read of waits for the log, and not for ever', async () => {
  const read = emptyAccounts();
  let goOn = (): void => undefined;
  const view: CommittedAccounts = {
    ...accounts.view,
    accounts: read,
    readToEnd: (timeoutMs) => {
      expect(timeoutMs).toBe(limits.rest.projectionWaitMs);
      return new Promise((resolve) => (goOn = resolve));
    },
  };
  const behind = await start({ view });
  try {
    const readAll = (): void => {
      for (const [id, user] of accounts.view.accounts.users.entries()) read.users.set(id, user);
    };
    const whileBehind = async (token: string): Promise<unknown> => {
      const waiting = behind.handlers.authenticate(token, address);
      expect(waiting).toBeInstanceOf(Promise);
      goOn();
      return waiting;
    };
    const { token } = await login();
    expect(await whileBehind(token), 'the time is over').toBeUndefined();
    const waiting = behind.handlers.authenticate(token, address);
    readAll();
    goOn();
    expect(await waiting, 'a new user').toMatchObject({ username: 'admin' });

    const body = { current_password: password, new_password: 'another horse battery' };
    const { result } = await accounts.handlers.changePassword(context, userId(), undefined, address, body);
    const changed = behind.handlers.authenticate(result.token, address);
    readAll();
    goOn();
    expect(await changed, 'a new password').toMatchObject({ username: 'admin' });
    const older = behind.handlers.authenticate(token, address);
    goOn();
    expect(await older, 'the older one').toBeUndefined();
  } finally {
    await behind.close();
  }
});

test('requests of one moment share a read of the log, begun after they came; none waits for one that hangs', async () => {
  let reads = 0;
  let hang = false;
  const { eventStore } = fixture.stores;
  const log: Pick<EventStore, 'read'> = {
    async *read(...given) {
      reads += 1;
      if (hang) await new Promise(() => undefined);
      yield* eventStore.read(...given);
    },
  };
  const view = openAccounts(log, fixture.options.logChain, silentLogger);
  await Promise.all(Array.from({ length: 5 }, () => view.readToEnd(20_000)));
  expect([reads, view.accounts.users.size], 'one for the first, one for those who came meanwhile').toEqual([2, 1]);
  hang = true;
  await view.readToEnd(1);
  view.close();
});

test('a token of a password change that a restore has undone stays refused, whatever passwords follow', async () => {
  const log = await fixture.log(streams.accounts);
  await changePassword('of the lost time');
  const { token: lost } = await login('of the lost time');
  const restored = await createCommandFixture(storesInMemory());
  await restored.stores.eventStore.append(streams.accounts, 'no_stream', log);
  const now = await start({}, restored);
  try {
    expect(await now.handlers.authenticate(lost, address)).toBeUndefined();
    await changePassword('of the present time', now);
    expect(await now.handlers.authenticate(lost, address)).toBeUndefined();
    const { token } = await now.handlers.login('admin', 'of the present time', address, 'r');
    expect(await now.handlers.authenticate(token, address)).toMatchObject({ username: 'admin' });
  } finally {
    await now.close();
    await restored.close();
  }
});

test('the view answers those who wait for it, and tells of each password change, whoever made it', async () => {
  const { view } = accounts;
  let told = 0;
  view.onTokensEnded(() => (told += 1));
  const other = await start();
  try {
    const waiting = view.until(() => view.accounts.users.size === 2, 20_000);
    await other.handlers.createUser(context, { username: 'eve', password, role: 'viewer' });
    expect(await waiting).toBe(true);
    await other.handlers.updateMe(context, userId(), undefined, { display_name: 'Ada' });
    const { password: stored } = view.accounts.users.get(userId()) ?? {};
    if (stored === undefined) throw new Error('there is no user');
    const rehash = {
      type: 'RehashUserPassword',
      id: userId(),
      password: { ...stored, ct: 'eA' },
      replaces: stored,
    } as const;
    await other.gateway.execute(rehash, context, () => undefined);
    await until(() => view.accounts.users.get(userId())?.version === 3, 'the profile and the other hash are read');
    expect(told).toBe(0);
    await other.gateway.execute({ ...reset, id: userId(), password: stored }, context, () => undefined);
    await until(() => told === 1, 'the change is told');
  } finally {
    await other.close();
  }
});

test('so many requests may wait for the accounts, and no more; none waits at the end', async () => {
  const { view } = accounts;
  const waiting = Array.from({ length: 256 }, () => view.until(() => false, 60_000));
  expect(await view.until(() => false, 60_000)).toBe(false);
  expect(await view.until(() => true, 60_000)).toBe(true);
  await view.close();
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([false]));
});

test('a changed password is answered once the other instances refuse older tokens, or say nothing in time', async () => {
  const asked: number[] = [];
  let say = (_all: boolean): void => undefined;
  const logger = { ...silentLogger, warn: (_fields: object, message: string) => void logged.push(message) };
  const tokensEnded = (revision: number): Promise<boolean> => {
    asked.push(revision);
    return new Promise((resolve) => (say = resolve));
  };
  const asking = await start({ tokensEnded, logger });
  try {
    for (const [from, to, all] of [
      [password, 'another horse battery', true],
      ['another horse battery', 'a third horse battery', false],
    ] as const) {
      const given = { current_password: from, new_password: to };
      let answered = false;
      const changing = asking.handlers
        .changePassword(context, userId(), undefined, address, given)
        .finally(() => (answered = true));
      const revision = asked.length + 1;
      await until(() => asked.length === revision, 'the others are asked');
      expect([asked.at(-1), answered]).toEqual([revision, false]);
      say(all);
      const { result } = await changing;
      expect(await asking.handlers.authenticate(result.token, address)).toMatchObject({ username: 'admin' });
    }
    expect(logged).toEqual([expect.stringContaining('not every instance has said in time')]);
  } finally {
    await asking.close();
  }
});

test('a list opens the personal fields of the page that is shown, and no others', async () => {
  const opened: string[] = [];
  const keyring: Keyring = {
    ...accounts.keyring,
    open(sealed, place) {
      opened.push(`${place.resourceId} ${place.field}`);
      return accounts.keyring.open(sealed, place);
    },
  };
  const reading = await start({ keyring });
  try {
    for (const username of ['eve', 'bob']) {
      await accounts.handlers.createUser(context, {
        username,
        password,
        role: 'viewer',
        display_name: username.toUpperCase(),
        email: `${username}@example.org`,
      });
    }
    await until(() => reading.view.accounts.users.size === 3, 'the users are read');
    const page = await reading.handlers.users({ page: 2, pageSize: 1, sort: 'name' });
    expect(page).toMatchObject({
      total: 3,
      items: [{ username: 'bob', display_name: 'BOB', email: 'bob@example.org' }],
    });
    const id = page.items[0]?.id;
    expect(opened.toSorted()).toEqual([`${id} display_name`, `${id} email`]);
    await reading.handlers.users({ page: 4, pageSize: 1, sort: '-created_at' });
    expect(opened.length).toBe(2);
  } finally {
    await reading.close();
  }
});

test('a profile edit keeps both values readable in its event, so that it can be taken back', async () => {
  const edit = (fields: object) => accounts.handlers.updateMe(context, userId(), undefined, fields);
  await edit({ display_name: 'Ada', email: 'ada@example.org' });
  await edit({ display_name: 'Bea', email: null });
  await edit({ display_name: null });
  // A password change in between leaves the personal values alone.
  const given = { current_password: password, new_password: 'another horse battery' };
  await accounts.handlers.changePassword(context, userId(), undefined, address, given);
  const opened = async (field: 'display_name' | 'email', sealed: SealedSecret | null) => {
    if (sealed === null) return null;
    const result = await accounts.keyring.open(sealed, userField(userId(), field));
    return result.kind === 'opened' ? Buffer.from(result.plaintext).toString('utf8') : result.kind;
  };
  const edits: unknown[] = [];
  for (const recorded of await fixture.log(streams.accounts)) {
    const event = accountEvent(recorded);
    if (event.type !== 'UserProfileUpdated') continue;
    const { display_name: name, email } = event.data.changes;
    edits.push({
      ...(name === undefined
        ? {}
        : { name: [await opened('display_name', name.from), await opened('display_name', name.to)] }),
      ...(email === undefined ? {} : { email: [await opened('email', email.from), await opened('email', email.to)] }),
    });
  }
  expect(edits).toEqual([
    { name: [null, 'Ada'], email: [null, 'ada@example.org'] },
    { name: ['Ada', 'Bea'], email: ['ada@example.org', null] },
    { name: ['Bea', null] },
  ]);
});

describe('with the real hashes', () => {
  beforeAll(() => void (makeHasher = createPasswordHasher));
  afterAll(() => void (makeHasher = () => plainPasswords));

  test('a password change stores Argon2id, and keeps the profile', async () => {
    await accounts.handlers.updateMe(context, userId(), undefined, { email: 'ada@example.org' });
    const before = accounts.view.accounts.users.get(userId());
    const given = { current_password: password, new_password: 'another horse battery' };
    await accounts.handlers.changePassword(context, userId(), undefined, address, given);
    const after = accounts.view.accounts.users.get(userId());
    if (before === undefined || after === undefined) throw new Error('there is no user');
    const opened = await accounts.keyring.open(after.password, userField(userId(), 'password'));
    const phc = opened.kind === 'opened' ? Buffer.from(opened.plaintext).toString('utf8') : opened.kind;
    expect(phc).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(after.password.ct).not.toBe(before.password.ct);
    expect(await accounts.handlers.me(userId())).toMatchObject({ email: 'ada@example.org' });
  });

  test('a sign-in replaces a hash of weaker parameters, and earlier tokens stay valid', async () => {
    const { token } = await login();
    const weak = await hash(password, { memoryCost: 4096, timeCost: 2, parallelism: 1 });
    const sealed = await accounts.keyring.seal(Buffer.from(weak), userField(userId(), 'password'));
    await accounts.gateway.execute({ ...reset, id: userId(), password: sealed }, context, () => undefined);
    expect(await accounts.handlers.authenticate(token, address)).toBeUndefined();
    const { token: newer } = await login();
    const stored = () => accounts.view.accounts.users.get(userId());
    await until(() => stored()?.password.ct !== sealed.ct, 'the hash is replaced');
    expect(await accounts.handlers.authenticate(newer, address)).toMatchObject({ username: 'admin' });
    const types = async () => (await fixture.log(streams.accounts)).map(({ type }) => type);
    const before = await types();
    await login();
    await login(wrong).catch(() => undefined);
    expect(await types()).toEqual(before);
    expect(before).toEqual(['UserCreated', 'UserPasswordChanged', 'UserPasswordChanged']);
  });
});

test('a field that was altered in the store is an internal error without the value', async () => {
  await accounts.handlers.updateMe(context, userId(), undefined, { email: 'ada@example.org' });
  const { email } = accounts.view.accounts.users.get(userId()) ?? {};
  if (email === null || email === undefined) throw new Error('no e-mail');
  // The sealed e-mail is put into the other field.
  await accounts.gateway.execute(
    { type: 'UpdateUserProfile', id: userId(), ifMatch: undefined, display_name: email },
    context,
    () => undefined,
  );
  const refusal = await refusalOf((async () => accounts.handlers.me(userId()))());
  expect(refusal.code).toBe('internal');
  expect(clearTextIn([refusal], ['ada@example.org'])).toEqual([]);
});

test('an unknown event stops the accounts view, and the view says why', async () => {
  const { revision, logChain } = accounts.view.accounts;
  const unknown = [
    {
      id: '00000000-0000-4000-8000-000000000001',
      type: 'UserCloned',
      data: {},
      metadata: {
        command: { id: 'c', index: 0, count: 1 },
        actor,
        request_id: 'r',
        occurred_at: '2025-01-01T00:00:00.000Z',
        schema_version: 1,
      },
    },
  ];
  const own = linked(unknown, logChain.value, streams.accounts, fixture.options.logChain);
  await fixture.stores.eventStore.append(streams.accounts, revision.value, own);
  await until(() => accounts.view.failure() !== undefined, 'the view reports its failure');
  expect(accounts.view.failure()).toContain('UserCloned');
  await expect(start()).rejects.toThrow('UserCloned');
});

describe('an event that creates a user who exists', () => {
  /** Appends it past the service, as somebody with the key of the log chain could. */
  async function inject(changed: Partial<Extract<AccountEvent, { type: 'UserCreated' }>['data']>): Promise<void> {
    const [first] = await fixture.log(streams.accounts);
    if (first === undefined) throw new Error('there is no user');
    const data = { ...first.data, ...changed } as JsonObject;
    const command = { id: randomIds.next(), index: 0, count: 1 };
    const event = { ...first, id: randomIds.next(), data, metadata: { ...first.metadata, command } };
    const own = linked([event], accounts.view.accounts.logChain.value, streams.accounts, fixture.options.logChain);
    const outcome = await fixture.stores.eventStore.append(streams.accounts, 'any', own);
    const revision = outcome.kind === 'appended' ? outcome.revision : Number.NaN;
    expect(await accounts.view.until(() => accounts.view.accounts.revision.value >= revision, 5_000)).toBe(true);
  }

  test('does not bring back its first password, its old tokens or another role', async () => {
    const { token } = await login();
    const id = userId();
    await changePassword('another horse battery');
    const after = accounts.view.accounts.users.get(id);
    await inject({ role: 'viewer' });
    expect(accounts.view.accounts.users.get(id)).toEqual(after);
    expect(await accounts.handlers.authenticate(token, address)).toBeUndefined();
    expect((await refusalOf(login())).code).toBe('unauthenticated');
    expect((await login('another horse battery')).user).toMatchObject({ id, role: 'admin', version: 2 });
    expect(logged).toEqual([expect.stringMatching(/"revision":2,.*a user who exists is ignored/)]);
  });

  test('does not take a name from the user who has it', async () => {
    const id = userId();
    const other = randomIds.next();
    await inject({ user_id: other });
    expect((await login()).user).toMatchObject({ id, username: 'admin' });
    expect(accounts.view.accounts.users.has(other)).toBe(false);
    const again = await start();
    expect([...again.view.accounts.users.ids()], 'also after a restart').toEqual([id]);
    await again.close();
  });

  test('leaves what commands are decided on as it is, too', async () => {
    await inject({ role: 'viewer' });
    await changePassword('another horse battery');
    expect((await login('another horse battery')).user).toMatchObject({ role: 'admin', version: 2 });
  });
});

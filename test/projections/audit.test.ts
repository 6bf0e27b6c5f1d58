/** Audit queries: the right entries, newest first, with their content from the log, and which of them are reverted. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeCommand } from '../../src/domain/audit/describe.js';
import { lastEvent, streams, type RecordedCommand } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import type { AuditQuery, Projections } from '../../src/projections/port.js';
import { tuning } from '../../src/projections/tuning.js';
import {
  append,
  openReadSide,
  planned,
  proposedEvents,
  randomLog,
  signedIn,
  someUsers,
  userCreated,
  type Planned,
  type ReadSide,
} from '../support/read-side.js';
import { eventually } from '../support/eventually.js';

let side: ReadSide;
let projections: Projections;
const log = randomLog(11, 120);
const commands: RecordedCommand[] = [];

beforeAll(async () => {
  side = await openReadSide();
  for (const one of log) {
    const { revision, position } = await append(side.stores.eventStore, one);
    const proposed = proposedEvents(one);
    const [first, ...rest] = proposed.map((event, index) => ({
      ...event,
      stream: one.stream,
      revision: revision - proposed.length + 1 + index,
      position: position! - proposed.length + 1 + index,
    }));
    commands.push({ stream: one.stream, events: [first!, ...rest] });
  }
  projections = await side.started();
});
afterAll(() => side.close());

const idOf = ({ events }: RecordedCommand): string => events[0].metadata.command.id;

function actorKeys(command: RecordedCommand): (string | null)[] {
  const { actor } = command.events[0].metadata;
  if (command.stream !== streams.signins) return [actor.id, actor.name];
  const { user_id, username } = command.events[0].data as { user_id: string | null; username: string | null };
  return [user_id, username];
}

type Described = NonNullable<ReturnType<typeof describeCommand>>;
const typesOf = ({ resource, others }: Described): string[] => [resource, ...others].map(({ type }) => type);
/** The names that each entry shows, in lower case. */
const namesShown = new Map<string, string>();

function expectedIds(query: AuditQuery): string[] {
  return commands
    .flatMap((command) => {
      const described = describeCommand(command);
      return described === null ? [] : [{ command, described, at: command.events[0].metadata.occurred_at }];
    })
    .filter(
      ({ command, described, at }) =>
        (query.includeAccounts ||
          described.readers === 'all' ||
          (described.readers !== 'admins' && described.readers.userId === query.ownTokensOf)) &&
        typesOf(described).some((type) => query.resourceTypes?.includes(type) ?? true) &&
        !typesOf(described).some((type) => query.notResourceTypes?.includes(type) ?? false) &&
        (query.q === undefined || namesShown.get(idOf(command))?.includes(query.q.toLowerCase()) === true) &&
        [described.resource, ...described.others].some(({ id }) => (query.resourceId ?? id) === id) &&
        (query.action === undefined || described.action === query.action) &&
        (query.actor === undefined || actorKeys(command).includes(query.actor)) &&
        (query.from === undefined || at >= query.from) &&
        (query.to === undefined || at <= query.to),
    )
    .sort((a, b) => lastEvent(b.command).position - lastEvent(a.command).position)
    .map(({ command }) => idOf(command));
}

describe('an audit query', () => {
  it('returns the entries that a scan of the whole log finds, in the same order, page by page', async () => {
    const times = commands.map(({ events }) => events[0].metadata.occurred_at);
    const resources = commands.flatMap((command) => describeCommand(command)?.resource.id ?? []);
    const maybe = <T>(values: readonly T[]): fc.Arbitrary<T | undefined> =>
      fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.constantFrom(...values) });
    const types = fc.constantFrom(
      'node',
      'l4_chain',
      'l4_upstream',
      'user',
      'session',
      'connectivity',
      'service',
      'api_token',
    );
    // Searches read the log's entries in many slices.
    Object.assign(tuning, { scanDocuments: 7 });
    const all = await projections.audit.list({ page: 1, pageSize: 500, includeAccounts: true });
    for (const { id, resource, actor } of all.items) {
      namesShown.set(id, `${resource.name ?? ''}\0${actor.name ?? ''}`.toLowerCase());
    }
    const queries: fc.Arbitrary<AuditQuery> = fc.record({
      page: fc.integer({ min: 1, max: 4 }),
      pageSize: fc.integer({ min: 1, max: 40 }),
      resourceTypes: fc.option(fc.uniqueArray(types, { minLength: 1, maxLength: 3 }), { nil: undefined, freq: 1 }),
      notResourceTypes: fc.option(fc.uniqueArray(types, { minLength: 1, maxLength: 3 }), { nil: undefined, freq: 1 }),
      q: maybe(['1', 'NODE', 'chain', 'a', 'ad', 'nowhere', ...someUsers.map(({ name }) => name)]),
      resourceId: maybe([...new Set(resources)]),
      actor: maybe([...someUsers.flatMap(({ id, name }) => [id, name]), 'system', 'nobody']),
      action: maybe([
        'node.create',
        'l4_chain.deploy',
        'session.sign_in',
        'user.update',
        'node.update',
        'api_token.create',
      ]),
      from: maybe(times),
      to: maybe(times),
      includeAccounts: fc.boolean(),
      ownTokensOf: maybe([...someUsers.map(({ id }) => id), 'nobody']),
    });
    await fc.assert(
      fc.asyncProperty(queries, async (query) => {
        const ids = expectedIds(query);
        const page = await projections.audit.list(query);
        const from = (query.page - 1) * query.pageSize;
        expect(page.items.map(({ id }) => id)).toEqual(ids.slice(from, from + query.pageSize));
        expect(page.total).toBe(ids.length);
        const behind = (await projections.audit.list({ ...query, page: 1, behind: 'start' })).next;
        if (behind === null || behind === undefined) return;
        const step = await projections.audit.list({ ...query, page: 1, behind });
        expect(step.items.map(({ id }) => id)).toEqual(ids.slice(query.pageSize, 2 * query.pageSize));
        expect(step.total).toBe(ids.length);
      }),
      { numRuns: 300 },
    );
  });
});

describe('an audit entry', () => {
  it('has the content of its command in the log, with the name that the resource had at that time', async () => {
    const { items } = await projections.audit.list({ page: 1, pageSize: 500, includeAccounts: true });
    expect(items).toHaveLength(expectedIds({ page: 1, pageSize: 500, includeAccounts: true }).length);
    const names = new Map<string, string>();
    const byId = new Map(items.map((entry) => [entry.id, entry]));
    for (const command of commands) {
      const described = describeCommand(command);
      if (described === null) continue;
      const { type, id, name } = described.resource;
      if (name !== null) names.set(`${type}/${id}`, name);
      const entry = byId.get(idOf(command))!;
      expect(entry).toMatchObject({
        at: command.events[0].metadata.occurred_at,
        action: described.action,
        changes: described.changes.slice(0, 20).map(({ resource, ...change }) => {
          const named = resource && { ...resource, name: names.get(`${resource.type}/${resource.id}`) };
          return named === undefined ? change : { ...change, resource: named };
        }),
        request_id: command.events[0].metadata.request_id,
        position: `${command.stream}@${lastEvent(command).revision}`,
        resource: { type, id, name: names.get(`${type}/${id}`) ?? null },
      });
      expect(await projections.audit.get(entry.id)).toEqual(entry);
    }
    expect(await projections.audit.get(uuidFromName('nothing'))).toBeUndefined();
  });

  it('of a sign-in has the account of its event as actor, or none if the event names none', async () => {
    const accepted = signedIn(someUsers[0]!);
    const refused = signedIn(null);
    await append(side.stores.eventStore, accepted);
    const { position } = await append(side.stores.eventStore, refused);
    expect(await projections.reached(position!, 10_000)).toBe(true);
    expect(await projections.audit.get(accepted.id)).toMatchObject({ actor: { type: 'user', ...someUsers[0]! } });
    expect(await projections.audit.get(refused.id)).toMatchObject({ actor: { type: 'user', id: null, name: null } });
  });

  it('of a user has the name of the first creation, whatever a later event of that kind says', async () => {
    const user = someUsers[0]!;
    await append(side.stores.eventStore, userCreated({ ...user, name: 'mallory' }));
    const changed = planned(streams.accounts, [
      { type: 'UserProfileUpdated', data: { user_id: user.id, changes: { email: { from: null, to: null } } } },
    ]);
    const { position } = await append(side.stores.eventStore, changed);
    expect(await projections.reached(position!, 10_000)).toBe(true);
    expect(await projections.audit.get(changed.id)).toMatchObject({ resource: { ...user, type: 'user' } });
  });

  it('is reverted while its newest revert is not reverted itself', async () => {
    const change = (revertOf?: string): Planned =>
      planned(
        streams.fleet,
        [{ type: 'ConnectivityUpdated', data: { changes: { multiplex: { from: false, to: true } } } }],
        { revertOf },
      );
    const first = change();
    const undo = change(first.id);
    const redo = change(undo.id);
    const undoAgain = change(first.id);
    const revertedBy = async (): Promise<unknown[]> => {
      const entries = await Promise.all([first, undo, redo].map(({ id }) => projections.audit.get(id)));
      return entries.map((entry) => entry?.reverted_by);
    };
    const steps: [Planned, unknown[]][] = [
      [first, [null, undefined, undefined]],
      [undo, [undo.id, null, undefined]],
      [redo, [null, redo.id, null]],
      [undoAgain, [undoAgain.id, redo.id, null]],
    ];
    for (const [step, expected] of steps) {
      const { position } = await append(side.stores.eventStore, step);
      expect(await projections.reached(position!, 10_000)).toBe(true);
      expect(await revertedBy()).toEqual(expected);
    }
    expect(await projections.audit.get(first.id)).toMatchObject({ revertible: false, reverts: null });
    expect((await projections.audit.get(first.id))?.not_revertible_because).toContain(undoAgain.id);
    expect(await projections.audit.get(redo.id)).toMatchObject({ revertible: true, reverts: undo.id });
  });

  it('is still listed, without its changes, when its events have expired', async () => {
    const expiring = await openReadSide();
    try {
      const user = { id: uuidFromName('user old'), name: 'old' };
      await expiring.append([userCreated(user), signedIn(user)]);
      const running = await expiring.started();
      await expiring.stores.eventStore.setRetention(streams.signins, { maxCount: 1 });
      await expiring.append([signedIn(user)]);
      const list = { page: 1, pageSize: 9, includeAccounts: true };
      await eventually(async () => (await running.audit.list(list)).total).toBe(3);
      const { items } = await running.audit.list({ page: 1, pageSize: 9, includeAccounts: true });
      const old = items.filter(({ action }) => action === 'session.sign_in').at(-1)!;
      expect(old).toMatchObject({ actor: { type: 'user', id: user.id, name: 'old' }, changes: [], revertible: false });
    } finally {
      await expiring.close();
    }
  });
});

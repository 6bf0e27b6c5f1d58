/**
 * The read models and their queries without a store: which documents an event concerns, what a document holds, which entries
 * a query finds. What each query finds, compared with a scan of the log, and which reverts stand, is in `audit.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import type { AgentEvent } from '../../src/domain/agents/facts.js';
import { agentsStream, streams, type Actor, type RecordedCommand, type RecordedEvent } from '../../src/kernel/event.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { limits } from '../../src/kernel/limits.js';
import { foldEntity, workOf } from '../../src/projections/engine/fold.js';
import { auditQueries, auditTrail } from '../../src/projections/models/audit-queries.js';
import { readCommands } from '../../src/projections/models/logged-commands.js';
import { actorOf } from '../../src/projections/models/audit-entry.js';
import { audit } from '../../src/projections/models/audit.js';
import { deploymentQueries, deployments } from '../../src/projections/models/deployments.js';
import { names, namesAt } from '../../src/projections/models/names.js';
import type { AuditQuery } from '../../src/projections/port.js';
import type { ReadModel } from '../../src/projections/read-model.js';
import { tuning } from '../../src/projections/tuning.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { isInRange } from '../../src/storage/group-index.js';
import { naiveQuery } from '../storage/contract/query-oracle.js';
import type {
  Collection,
  Fields,
  GroupQuery,
  GroupRange,
  IndexSpec,
  StoredDocument,
} from '../../src/storage/read-store.js';
import * as f from '../support/fleet.js';

const system: Actor = { type: 'system', id: 'system', name: 'system' };

interface Written {
  readonly stream: string;
  readonly events: readonly { readonly type: string; readonly data: object }[];
  readonly id?: string;
  readonly actor?: Actor;
  readonly at?: number;
  readonly revertOf?: string;
}

/** A log of these commands: revisions grow in each stream, positions in the whole log, by ten for each event. */
function logOf(...written: readonly Written[]): readonly RecordedCommand[] {
  const revisions = new Map<string, number>();
  let position = 0;
  return written.map(({ stream, events, id = `c${position}`, actor = system, at = position, revertOf }) => {
    const recorded = events.map(({ type, data }, index): RecordedEvent => {
      const revision = (revisions.get(stream) ?? -1) + 1;
      revisions.set(stream, revision);
      position += 10;
      return {
        id: `e${position}`,
        stream,
        type,
        data: data as JsonObject,
        revision,
        position,
        metadata: {
          command: { id, index, count: events.length },
          actor,
          request_id: `request of ${id}`,
          occurred_at: new Date(at * 1000).toISOString(),
          schema_version: type === 'NodeDeleted' ? 2 : 1,
          ...(revertOf === undefined ? {} : { revert_of: revertOf }),
        },
      };
    });
    return { stream, events: recorded as unknown as RecordedCommand['events'] };
  });
}

const onFleet = (type: string, data: object, more: Partial<Written> = {}): Written => ({
  stream: streams.fleet,
  events: [{ type, data }],
  ...more,
});
const nodeCreated = (node_id: string, more: Partial<Written> = {}, fields: object = {}): Written =>
  onFleet('NodeCreated', { node_id, name: node_id, description: null, address: null, labels: {}, ...fields }, more);
const renamed = (node_id: string, to: string, more: Partial<Written> = {}): Written =>
  onFleet('NodeUpdated', { node_id, changes: { name: { from: '', to } } }, more);
const labelled = (node_id: string): Written =>
  onFleet('NodeUpdated', { node_id, changes: { 'labels.site': { from: null, to: 'x' } } });
const nodeDeleted = (node_id: string): Written =>
  onFleet('NodeDeleted', {
    node_id,
    name: node_id,
    description: null,
    address: null,
    labels: {},
    policies: [],
    override: null,
    generation_offset: 0,
  });
const userCreated = (user_id: string, username: string): Written => ({
  stream: streams.accounts,
  events: [
    {
      type: 'UserCreated',
      data: { user_id, username, role: 'viewer', display_name: null, email: null, password: f.sealed },
    },
  ],
});
const signedIn = (user_id: string | null, username: string | null, at?: number): Written => ({
  stream: streams.signins,
  events: [
    { type: user_id === null ? 'SignInRefused' : 'SignedIn', data: { user_id, username, address: '192.0.2.9' } },
  ],
  ...(at === undefined ? {} : { at }),
});
const session = (node_id: string, agent_version = '1.0.0'): Written => {
  const event: AgentEvent = {
    type: 'AgentSessionOpened',
    data: {
      node_id,
      session_id: 's',
      instance_id: 'i',
      agent_version,
      public_ipv4: '',
      public_ipv6: '',
      detected_addresses: [],
      multiplex: false,
      multiplex_port: 0,
    },
  };
  return { stream: agentsStream(node_id), events: [event], actor: { type: 'agent', id: node_id, name: node_id } };
};
const identity = { installation_id: 'here', signing_public: 'x', signing_private: f.sealed };
const first: Written = {
  stream: streams.service,
  events: [{ type: 'ServiceIdentityCreated', data: { ...identity, static_public: 'y', static_private: f.sealed } }],
};
const keyReplaced: Written = { stream: streams.service, events: [{ type: 'TokenSigningKeyReplaced', data: identity }] };

type Documents<F extends Fields> = ReadonlyMap<string, F>;

/** The documents of a read model after a log, each command by itself, as the engine folds them. */
function documentsOf<F extends Fields>(model: ReadModel<F>, log: readonly RecordedCommand[]): Documents<F> {
  const documents = new Map<string, StoredDocument>();
  for (const command of log) {
    for (const [id, steps] of workOf(model as unknown as ReadModel, [command])) {
      const { write, poisoned } = foldEntity(model as unknown as ReadModel, id, documents.get(id), steps);
      expect(poisoned).toBeUndefined();
      if (write !== undefined) documents.set(id, write);
    }
  }
  return new Map([...documents].map(([id, { fields }]) => [id, fields as F]));
}

/** A collection in memory that answers queries as stores do, and remembers them. */
function collectionOf<F extends Fields>(documents: Documents<F>, index: IndexSpec = audit.index as IndexSpec) {
  const queries: GroupQuery[] = [];
  const all = [...documents].map(([id, fields]): StoredDocument<F> => ({ id, position: 0, fields }));
  const collection = {
    get: async (id: string) => all.find((one) => one.id === id),
    getMany: async (ids: readonly string[]) => all.filter(({ id }) => ids.includes(id)),
    async find(query: GroupQuery) {
      queries.push(query);
      return naiveQuery(all, index, query).ids.flatMap((id) => all.find((one) => one.id === id) ?? []);
    },
    count: async (range: GroupRange) => all.filter(({ fields }) => isInRange(index, fields, range)).length,
  } as unknown as Collection<F>;
  return { collection, queries };
}

/** The events of a log, which remembers what was read of it. */
function storeOf(log: readonly RecordedCommand[], without: (event: RecordedEvent) => boolean = () => false) {
  const reads: string[] = [];
  const store = {
    async *read(stream: string, { from, maxCount }: { readonly from: number; readonly maxCount: number }) {
      reads.push(`${stream} ${from}+${maxCount}`);
      const events = log
        .flatMap((command) => command.events)
        .filter((event) => event.stream === stream && event.revision >= from && !without(event));
      yield* events.slice(0, maxCount);
    },
  } as unknown as EventStore;
  return { store, reads: () => [...reads].sort() };
}

const keysOf = (model: { keys(event: RecordedEvent): readonly string[] }, ...written: readonly Written[]) =>
  logOf(...written).flatMap(({ events }) => events.map((event) => model.keys(event)));

describe('the read model of deployments', () => {
  const deployed = (chain_id: string, to: object | null = {}): Written =>
    onFleet('ChainDeployed', {
      chain_id,
      chain_version: 3,
      definition: { from: null, to },
      nodes: [{ node_id: 'n', offset: 5 }],
    });

  it('has one for each deploy, with the generation that each node got, and none for the way back to none', async () => {
    const log = logOf(
      nodeCreated('n'),
      deployed('one'),
      deployed('one'),
      deployed('two'),
      deployed('one', null),
      userCreated('u', 'ada'),
    );
    const documents = documentsOf(deployments, log);
    expect([...documents.keys()]).toEqual(['c10', 'c20', 'c30']);
    expect(documents.get('c20')).toEqual({
      chain_id: 'one',
      revision: '0000000000000002',
      deployment: {
        id: 'c20',
        chain_id: 'one',
        chain_version: 3,
        at: '1970-01-01T00:00:20.000Z',
        nodes: [{ node_id: 'n', generation: 8 }],
        definition: {},
      },
    });
    const { collection, queries } = collectionOf(documents, deployments.index);
    const asked = deploymentQueries(() => collection);
    expect((await asked.ofChain('one')).map(({ id }) => id)).toEqual(['c20', 'c10']);
    expect(queries[0]?.limit).toBe(tuning.deploymentsListed);
    const [other] = logOf(nodeCreated('n'));
    expect(deployments.evolve(documents.get('c20'), other!.events[0], other!, 'c20')).toBe(documents.get('c20'));
  });
});

describe('the read model of names', () => {
  it('keeps each name with the position since which it holds, and a user the first one', () => {
    const log = logOf(
      nodeCreated('n'),
      renamed('n', 'second'),
      renamed('n', 'second'),
      labelled('n'),
      userCreated('u', 'ada'),
      userCreated('u', 'other'),
      session('n'),
      nodeDeleted('n'),
      renamed('n', 'fourth'),
    );
    expect(keysOf(names, labelled('n'), session('n'), signedIn('u', 'ada'))).toEqual([[], [], []]);
    expect(Object.fromEntries(documentsOf(names, log))).toEqual({
      'node/n': {
        names: [
          { position: 10, name: 'n' },
          { position: 20, name: 'second' },
          // The delete says the name that the node had.
          { position: 80, name: 'n' },
          { position: 90, name: 'fourth' },
        ],
      },
      'user/u': { names: [{ position: 50, name: 'ada' }] },
    });
  });

  it('does not grow at an event that says the newest name again', () => {
    const log = logOf(nodeCreated('n'), renamed('n', 'second'), renamed('n', 'third'), renamed('n', 'third'));
    expect(
      documentsOf(names, log)
        .get('node/n')
        ?.names.map(({ name }) => name),
    ).toEqual(['n', 'second', 'third']);
  });

  it('keeps the newest of very many', () => {
    const many = Array.from({ length: tuning.namesPerResource + 3 }, (_, index) => renamed('n', `name ${index}`));
    const kept = documentsOf(names, logOf(...many)).get('node/n')?.names ?? [];
    expect([kept.length, kept.at(-1)?.name]).toEqual([tuning.namesPerResource, `name ${tuning.namesPerResource + 2}`]);
  });

  it('answers for many resources at once, each at its own position', async () => {
    const { collection } = collectionOf(
      documentsOf(names, logOf(nodeCreated('n'), renamed('n', 'second'), nodeCreated('m'))),
    );
    const lookup = (id: string, position: number) => ({ type: 'node', id, position });
    const lookups = [
      lookup('n', 9),
      lookup('n', 10),
      lookup('n', 19),
      lookup('n', 20),
      lookup('m', 99),
      lookup('x', 99),
    ];
    expect(lookups.map(await namesAt(collection, lookups))).toEqual([null, 'n', 'n', 'second', 'm', null]);
    const none = await namesAt({} as never, []);
    expect(none(lookup('n', 1))).toBeNull();
  });
});

describe('the read model of the audit', () => {
  const revert = (id: string, revertOf: string, at?: number) =>
    renamed('n', 'back', { id, revertOf, ...(at === undefined ? {} : { at }) });

  it('has an entry for each command of the fleet, of accounts, of sign-ins and of the service but the first start', () => {
    const log = [nodeCreated('n'), userCreated('u', 'ada'), signedIn('u', 'ada'), first, keyReplaced, session('n')];
    expect(keysOf(audit, ...log)).toEqual([['c0'], ['c10'], ['c20'], [], ['c40'], []]);
    expect(keysOf(audit, revert('r', 'x'))).toEqual([['r', 'x']]);
    const two = { ...nodeCreated('n'), events: [nodeCreated('n').events[0]!, nodeCreated('n').events[0]!] };
    expect(keysOf(audit, two)).toEqual([['c0'], []]);
  });

  it('says where the command stands, who gave it and what queries filter by', () => {
    const ada: Actor = { type: 'user', id: 'U1', name: 'Ada' };
    const two = {
      ...nodeCreated('n', { actor: ada, at: 7 }),
      events: [nodeCreated('n').events[0]!, renamed('n', 'x').events[0]!],
    };
    const documents = documentsOf(
      audit,
      logOf(userCreated('u', 'ada'), two, signedIn(null, null), signedIn('U2', 'Grace')),
    );
    expect(documents.get('c10')).toEqual({
      order: '0000000000000030',
      stream: streams.fleet,
      revision: 0,
      count: 2,
      position: 30,
      at: '1970-01-01T00:00:07.000Z',
      action: 'node.create',
      resource_type: 'node',
      resource_id: 'n',
      resource_name: 'n',
      actor_type: 'user',
      actor_id: 'U1',
      actor_name: 'Ada',
      groups: [
        'all',
        'resource n',
        'actor u1',
        'actor ada',
        'open all',
        'open resource n',
        'open actor u1',
        'open actor ada',
        'type node',
        'action node.create',
      ],
      reverts: null,
      reverted_by: null,
    });
    expect(documents.get('c0')).toMatchObject({
      resource_type: 'user',
      groups: ['all', 'resource u', 'actor system', 'type user', 'action user.create'],
    });
    expect(documents.get('c30')).toMatchObject({
      actor_type: 'user',
      actor_id: null,
      resource_type: 'session',
      groups: ['all', 'type session', 'action session.sign_in_refused'],
    });
    expect(documents.get('c40')).toMatchObject({ actor_id: 'U2', actor_name: 'Grace' });
    const [event] = logOf(nodeCreated('n', { actor: ada }))[0]!.events;
    expect(actorOf(event)).toEqual(ada);
  });

  it('marks an entry as reverted by the newest revert of it, and knows what a revert reverts', () => {
    const documents = documentsOf(
      audit,
      logOf(nodeCreated('n', { id: 'one' }), revert('r1', 'one'), revert('r2', 'one'), revert('r3', 'gone')),
    );
    expect([...documents].map(([id, { reverts, reverted_by }]) => [id, reverts, reverted_by])).toEqual([
      ['one', null, 'r2'],
      ['r1', 'one', null],
      ['r2', 'one', null],
      ['r3', 'gone', null],
    ]);
  });

  it('lets go of sign-ins as old as their events may get', () => {
    const kept = limits.events.signinsMaxAgeSeconds;
    const documents = documentsOf(
      audit,
      logOf(signedIn('u', 'ada', 0), signedIn('u', 'ada', 1), nodeCreated('n', { at: 0 })),
    );
    const expired = (now: number) =>
      [...documents]
        .filter(([, fields]) => isInRange(audit.index, fields, audit.expired?.(now * 1000) ?? { groups: [''] }))
        .map(([id]) => id);
    expect(expired(kept)).toEqual([]);
    expect(expired(kept + 1)).toEqual(['c0']);
    expect(expired(kept + 2)).toEqual(['c0', 'c10']);
  });

  const agent: Actor = { type: 'agent', id: 'n', name: 'unknown' };
  const log = logOf(
    nodeCreated('n', { id: 'create', at: 1 }),
    userCreated('u', 'ada'),
    renamed('n', 'second', { id: 'rename', at: 2, actor: { type: 'user', id: 'U1', name: 'Ada' } }),
    revert('undo', 'rename', 3),
    revert('redo', 'undo', 4),
    onFleet('NodeConfigRefreshed', { node_id: 'n' }, { id: 'refresh', at: 5 }),
    onFleet(
      'NodeReportedAddressChanged',
      { node_id: 'n', public_ipv4: { from: null, to: '192.0.2.1' }, public_ipv6: { from: null, to: null } },
      { id: 'report', at: 6, actor: agent },
    ),
    signedIn('U1', 'ada', 7),
    keyReplaced,
    nodeCreated('m', { id: 'other', at: 9 }),
  );
  function asked(entries = log, held = log, without?: (event: RecordedEvent) => boolean) {
    const { collection } = collectionOf(documentsOf(audit, entries));
    const { store } = storeOf(held, without);
    return auditQueries(store, () => ({
      audit: collection,
      names: collectionOf(documentsOf(names, entries)).collection,
    }));
  }
  const list = async (query: Partial<AuditQuery>) => {
    const { items, total } = await asked().list({ page: 1, pageSize: 50, includeAccounts: true, ...query });
    expect(total).toBeGreaterThanOrEqual(items.length);
    return items.map(({ id }) => id).join(' ');
  };
  const at = (second: number) => new Date(second * 1000).toISOString();

  it.each<[string, Partial<AuditQuery>, string]>([
    ['an actor by id, in any case', { actor: 'u1' }, 'c70 rename'],
    ['an actor by name, in any case', { actor: 'ADA' }, 'c70 rename'],
    ['a time on, in another zone', { from: '1970-01-01T01:00:09+01:00', includeAccounts: false }, 'other c80'],
  ])('is asked for %s', async (_, query, ids) => {
    expect(await list(query)).toBe(ids);
  });

  it('asks one group for one filter, and none for what the caller may not see', async () => {
    const { collection, queries } = collectionOf(documentsOf(audit, log));
    const query = auditQueries(storeOf(log).store, () => ({
      audit: collection,
      names: collectionOf(new Map()).collection as never,
    }));
    const groupsAsked = async (more: Partial<AuditQuery>) => {
      queries.length = 0;
      await query.list({ page: 1, pageSize: 5, includeAccounts: false, ...more });
      return queries[0]?.groups;
    };
    expect(await groupsAsked({ resourceTypes: ['user'] })).toBeUndefined();
    expect(await groupsAsked({ action: 'session.sign_in' })).toBeUndefined();
    expect(await groupsAsked({})).toEqual(['open all']);
    expect(await groupsAsked({ actor: 'Ada' })).toEqual(['open actor ada']);
    expect(await groupsAsked({ action: 'node.create' })).toEqual(['action node.create']);
    expect(await groupsAsked({ resourceId: 'n' })).toEqual(['open resource n']);
    expect(await groupsAsked({ resourceId: 'n', includeAccounts: true })).toEqual(['resource n']);
    expect(await groupsAsked({ includeAccounts: true })).toEqual(['all']);
  });

  it('names an agent as its node was called then, whatever its entry is about, and a user by the own name', async () => {
    const address = { public_ipv4: { from: null, to: '192.0.2.1' }, public_ipv6: { from: null, to: null } };
    const report = (actor: Actor) => onFleet('NodeReportedAddressChanged', { node_id: 'm', ...address }, { actor });
    const entries = logOf(
      nodeCreated('n'),
      nodeCreated('m'),
      report({ type: 'agent', id: 'n', name: 'unknown' }),
      renamed('n', 'later'),
      report({ type: 'agent', id: 'gone', name: 'unknown' }),
      report({ type: 'user', id: 'n', name: 'Ada' }),
    );
    const shown = async (id: string) => {
      const entry = await asked(entries, entries).get(id);
      return [entry?.actor.name, entry?.resource.name];
    };
    expect(await shown('c20')).toEqual(['n', 'm']);
    expect(await shown('c40')).toEqual(['unknown', 'm']);
    expect(await shown('c50')).toEqual(['Ada', 'm']);
  });

  it('shows an entry whose events the log no longer holds by what it knows itself', async () => {
    const queries = asked(log, log, ({ metadata }) => metadata.command.id === 'rename');
    expect(await queries.get('rename')).toEqual({
      id: 'rename',
      at: at(2),
      actor: { type: 'user', id: 'U1', name: 'Ada' },
      action: 'node.update',
      resource: { type: 'node', id: 'n', name: 'second' },
      changes: [],
      changes_total: 0,
      request_id: '',
      position: `${streams.fleet}@1`,
      revertible: false,
      not_revertible_because: 'its events have expired',
      token: null,
      reverts: null,
      reverted_by: null,
    });
  });

  it('is a trail of the entries about one resource behind a position, newest first', async () => {
    const { collection, queries } = collectionOf(documentsOf(audit, log));
    const trail = auditTrail(storeOf(log).store, () => ({ audit: collection }));
    const about = async (type: string, id: string, behind: number) => {
      const entries = [];
      for await (const entry of trail.about(type, id, behind)) entries.push(entry);
      return entries;
    };
    expect((await about('node', 'n', 30)).map(({ id }) => id)).toEqual(['report', 'refresh', 'redo', 'undo']);
    expect((await about('node', 'n', 60))[0]).toEqual({
      id: 'report',
      action: 'node.update',
      actor: 'agent',
      at: at(6),
      position: 70,
      events: 1,
      isAboutSeveral: false,
    });
    expect(await about('l4_chain', 'n', 0)).toEqual([]);
    expect(queries).toHaveLength(3);
    expect((await trail.command('rename'))?.events[0].metadata.command.id).toBe('rename');
    expect(await trail.command('gone')).toBeUndefined();
    // Another log has another command in its place.
    const misplaced = new Map(
      [...documentsOf(audit, log)].map(([id, fields]) => [id === 'rename' ? 'not of this log' : id, fields]),
    );
    const elsewhere = auditTrail(storeOf(log).store, () => ({ audit: collectionOf(misplaced).collection }));
    expect(await elsewhere.command('not of this log')).toBeUndefined();
    const many = logOf(
      ...Array.from({ length: tuning.auditTrailPage }, (_, index) => renamed('n', `${index}`, { id: `r${index}` })),
    );
    const paged = collectionOf(documentsOf(audit, many));
    let count = 0;
    for await (const _entry of auditTrail(storeOf(many).store, () => ({ audit: paged.collection })).about(
      'node',
      'n',
      0,
    ))
      count += 1;
    const last = `${many[0]!.events[0].position}`.padStart(16, '0');
    expect([count, paged.queries.map(({ below }) => below)]).toEqual([many.length, [undefined, last]]);
    // What is not behind the position is not read.
    expect(queries.map(({ from }) => Number(from))).toEqual([31, 61, 1]);
  });
});

describe('commands of the log', () => {
  const two = { ...nodeCreated('n'), events: [nodeCreated('n').events[0]!, renamed('n', 'x').events[0]!] };
  const log = logOf(
    two,
    labelled('n'),
    userCreated('u', 'ada'),
    ...Array.from({ length: 2 * tuning.auditReadGap }, () => labelled('n')),
  );
  const place = ({ stream, events }: RecordedCommand) => ({
    stream,
    revision: events[0].revision,
    count: events.length,
  });

  it('are read by their places, in the order asked for, neighbours together', async () => {
    const { store, reads } = storeOf(log);
    const wanted = [log.at(-1)!, log[2]!, log[1]!, log[0]!, log[1]!];
    expect(await readCommands(store, wanted.map(place))).toEqual(wanted);
    expect(reads()).toEqual(
      [
        `${streams.accounts} 0+1`,
        `${streams.fleet} 0+3`,
        `${streams.fleet} ${log.at(-1)!.events[0].revision}+1`,
      ].sort(),
    );
  });

  it('are read once for each stream, in whichever order their places are given', async () => {
    const { store, reads } = storeOf(log);
    const at = (stream: string, revision: number) => ({ stream, revision, count: 1 });
    await readCommands(store, [
      at(streams.fleet, 2),
      at(streams.accounts, 0),
      at(streams.signins, 1),
      at(streams.fleet, 1),
      at(streams.signins, 0),
      at(streams.accounts, 1),
      at(streams.fleet, 0),
    ]);
    expect(reads()).toEqual([`${streams.accounts} 0+2`, `${streams.fleet} 0+3`, `${streams.signins} 0+2`].sort());
  });

  it('that are near each other share a read, and those that are not do not', async () => {
    const at = (revision: number) => ({ stream: streams.fleet, revision, count: 1 });
    for (const [gap, count] of [
      [tuning.auditReadGap, 1],
      [tuning.auditReadGap + 1, 2],
    ] as const) {
      const { store, reads } = storeOf(log);
      await readCommands(store, [at(3), at(4 + gap)]);
      expect(reads()).toHaveLength(count);
    }
    const { store, reads } = storeOf(log);
    await readCommands(store, [{ ...at(3), count: 9 }, at(4)]);
    expect(reads()).toEqual([`${streams.fleet} 3+9`]);
  });

  it('are undefined when the log holds them no more, or not completely', async () => {
    const { store } = storeOf(
      log,
      ({ revision, stream }) => stream === streams.fleet && (revision === 1 || revision === 2),
    );
    expect(await readCommands(store, [log[0]!, log[1]!, log[2]!].map(place))).toEqual([undefined, undefined, log[2]]);
    expect(await readCommands(store, [])).toEqual([]);
  });
});

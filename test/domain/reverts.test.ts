/** `docs/contract/domain.md#audit-and-revert`: what undoes each kind of entry, by example, and what stands in its way. */
import { runSync } from '../../src/kernel/pieces.js';
import type { Result } from '../../src/kernel/result.js';
import { describe, expect, it } from 'vitest';
import { describeCommand } from '../../src/domain/audit/describe.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { resourceOf, type FleetCommand, type FleetEvent } from '../../src/domain/fleet/resources.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import { hypothetical } from '../../src/domain/fleet/hypothetical.js';
import { previewReverts } from '../../src/domain/fleet-file/revert.js';
import type { ResourceMeta } from '../../src/domain/resource/meta.js';
import type { RefusalCode } from '../../src/domain/resource/refusal.js';
import {
  decideRevert,
  fieldsInTheWay,
  previewOf,
  subjectsOf,
  versionOfSubject,
  type Revert,
} from '../../src/domain/revert/decide.js';
import {
  changes,
  deletes,
  deletesPolicy,
  laterWork,
  movesOverride,
  undoOf,
  verbOf,
  type EntryAbout,
  type History,
} from '../../src/domain/revert/history.js';
import { lastEvent, type Actor, type RecordedCommand } from '../../src/kernel/event.js';
import * as f from '../support/fleet.js';
import { dumpFleet, dumpIndexes } from '../support/fleet-dump.js';
import * as l3 from '../support/l3-networks.js';
import { fieldsOf } from '../support/revert-model.js';

const operator: Actor = { type: 'user', id: 'operator', name: 'operator' };
const agent: Actor = { type: 'agent', id: 'agent', name: 'agent' };

const idOf = ({ events: [first] }: RecordedCommand): string => first.metadata.command.id;
const timeOf = ({ events: [first] }: RecordedCommand): string => first.metadata.occurred_at;
const typesOf = ({ events }: RecordedCommand): readonly string[] => events.map(({ type }) => type);
const subjectOf = ({ events: [first] }: RecordedCommand): string => Object.values(resourceOf(first)).join(' ');
const about = (command: RecordedCommand): EntryAbout => ({
  id: idOf(command),
  action: describeCommand(command)?.action ?? '',
  actor: command.events[0].metadata.actor.type,
  at: timeOf(command),
  position: lastEvent(command).position,
  events: command.events.length,
  isAboutSeveral: false,
});

/** The revert of an entry about one resource. */
const revertOf = (entry: RecordedCommand, history: History): Revert => ({
  type: 'Revert',
  entry,
  histories: new Map(Array.from(subjectsOf(entry).keys(), (owner) => [owner, history])),
});

function valueOf<T>(result: Result<T, unknown>): T {
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

/** A fleet with its log, in which operators write and revert. */
function site(...commands: readonly FleetCommand[]) {
  const fleet = emptyFleet();
  const log: RecordedCommand[] = [];
  const note = (command: RecordedCommand): RecordedCommand => {
    log.push(command);
    return command;
  };
  function write(command: FleetCommand, actor = operator): RecordedCommand {
    const performed = f.perform(fleet, command, { actor });
    if (performed.kind !== 'written') throw new Error(`${command.type} wrote nothing: ${JSON.stringify(performed)}`);
    return note(performed.command);
  }
  /** Writes what no command decides: what an older release may have written. */
  function append(...events: readonly FleetEvent[]): RecordedCommand {
    const command = f.recorded(fleet, events, { actor: operator });
    applyCommand(fleet, command);
    return note(command);
  }
  function historyOf(entry: RecordedCommand, known: Partial<History> = {}): History {
    const all = log.filter((command) => subjectOf(command) === subjectOf(entry));
    const [first] = all;
    return {
      version: versionOfSubject(fleet, entry),
      later: all
        .slice(all.indexOf(entry) + 1)
        .toReversed()
        .map(about),
      changedBy: new Map(),
      former: {
        version: all.reduce((sum, { events }) => sum + events.length, 0),
        created_at: first === undefined ? '' : timeOf(first),
      },
      ...known,
    };
  }
  const decide = (entry: RecordedCommand, known?: Partial<History>) =>
    decideRevert(fleet, revertOf(entry, historyOf(entry, known)));
  for (const command of commands) write(command);
  return {
    fleet,
    log,
    write,
    append,
    historyOf,
    decide,
    fields: () => fieldsOf(fleet),
    state: <S extends ResourceMeta>(entry: RecordedCommand): S | undefined => {
      const { type, id } = resourceOf(entry.events[0]);
      return fleet.get<S>({ type }, id);
    },
    /** Reverts an entry, which must be possible. */
    undo(entry: RecordedCommand): RecordedCommand & { readonly touched: ReadonlySet<string> } {
      const before = dumpFleet(fleet);
      const decision = decide(entry);
      expect(dumpFleet(fleet), 'a decision leaves the fleet as it was').toBe(before);
      if (!decision.ok) throw new Error(decision.error.message);
      const command = f.recorded(fleet, decision.value, { actor: operator, revertOf: idOf(entry) });
      const touched = applyCommand(fleet, command);
      return Object.assign(note(command), { touched });
    },
    /** Expects a refusal that leaves the fleet as it is. @param said the whole sentence, or its parts */
    refused(
      entry: RecordedCommand,
      said: string | readonly string[],
      known: Partial<History> = {},
      code: RefusalCode = 'conflict',
    ): void {
      const before = dumpFleet(fleet);
      const decision = decide(entry, known);
      const error = decision.ok ? undefined : decision.error;
      expect(error?.code, JSON.stringify(decision)).toBe(code);
      if (typeof said === 'string') expect(error?.message).toBe(said);
      else for (const part of said) expect(error?.message).toContain(part);
      expect(dumpFleet(fleet)).toBe(before);
    },
  };
}

const remove = {
  node: (name: string): FleetCommand => ({ type: 'DeleteNode', id: f.nodeId(name), ifMatch: undefined }),
  upstream: (name: string): FleetCommand => ({ type: 'DeleteUpstream', id: f.upstreamId(name), ifMatch: undefined }),
  chain: (name: string): FleetCommand => ({ type: 'DeleteChain', id: f.chainId(name), ifMatch: undefined }),
};
const override = (name: string, multiplex: boolean | null, multiplex_port: number | null = null): FleetCommand =>
  f.settings({ nodes: [{ node_id: f.nodeId(name), multiplex, multiplex_port }] });

interface Kind {
  readonly noun: string;
  readonly prepare: readonly FleetCommand[];
  readonly create: FleetCommand;
  readonly edit: FleetCommand;
  readonly remove: FleetCommand;
}

const twoNodes = [f.createNode('a'), f.createNode('b')];
const network = [l3.member('a', '10.1.0.1/32'), l3.member('b', '10.1.0.2/32')];
const kinds: readonly Kind[] = [
  {
    noun: 'Node',
    prepare: [],
    create: f.createNode('a', { labels: { site: 'x', rack: '1' } }),
    edit: f.updateNode('a', { name: 'renamed', description: 'text', labels: { site: 'y', row: '2' } }),
    remove: remove.node('a'),
  },
  {
    noun: 'Upstream',
    prepare: [],
    create: f.createUpstream('up'),
    edit: f.updateUpstream('up', { endpoint: 'other.example:8443', enabled: false }),
    remove: remove.upstream('up'),
  },
  {
    noun: 'Credential',
    prepare: [f.createX25519('keys')],
    create: f.createReality('identity', 'keys'),
    edit: f.updateCredential('identity', { name: 'renamed', server_names: ['c.example'] }),
    remove: f.deleteCredential('identity'),
  },
  {
    noun: 'Chain',
    prepare: twoNodes,
    create: f.createChain('one', [f.hop('a', 80)]),
    edit: f.updateChain('one', { name: 'renamed', hops: [f.hop('a', 81), f.hop('b', 81)] }),
    remove: remove.chain('one'),
  },
  {
    noun: 'Route',
    prepare: twoNodes,
    create: f.createRoute('site', [f.routeHop('a', 8080)]),
    edit: f.updateRoute('site', { name: 'renamed', path_prefix: '/app' }),
    remove: f.deleteRoute('site'),
  },
  {
    noun: 'ListenerPolicy',
    prepare: twoNodes,
    create: f.savePolicy('a', 443, ['tls', 'raw', 'reality', 'noise']),
    edit: f.savePolicy('a', 443, ['noise', 'raw', 'reality', 'tls']),
    remove: f.deletePolicy('a', 443),
  },
  {
    noun: 'L3Network',
    prepare: [...twoNodes, ...l3.identity()],
    create: l3.createNetwork('net', network, [l3.tunnel('a', 'b')]),
    edit: l3.updateNetwork('net', { name: 'renamed', mtu: 1300, members: [...network].reverse() }),
    remove: l3.deleteNetwork('net'),
  },
];

describe.each(kinds)('an entry about a $noun', ({ noun, ...kind }) => {
  it('that created it is undone by a delete, which can be taken back, and so on', () => {
    const s = site(...kind.prepare);
    const [without, indexesWithout] = [s.fields(), dumpIndexes(s.fleet)];
    const created = s.write(kind.create);
    const [there, indexesThere] = [s.fields(), dumpIndexes(s.fleet)];

    const undone = s.undo(created);
    expect(typesOf(undone)).toEqual([`${noun}Deleted`]);
    expect([s.fields(), dumpIndexes(s.fleet)]).toEqual([without, indexesWithout]);
    s.refused(created, `the entry was reverted by the entry ${idOf(undone)}; revert that one instead`);

    const back = s.undo(undone);
    expect(typesOf(back)).toEqual([`${noun}Restored`]);
    expect([s.fields(), dumpIndexes(s.fleet)]).toEqual([there, indexesThere]);
    const comeBack = { version: 3, created_at: timeOf(created), updated_at: timeOf(back) };
    expect(s.state(created)).toMatchObject(comeBack);
    s.refused(undone, [`was reverted by the entry ${idOf(back)}`]);

    const again = s.undo(back);
    expect(typesOf(again)).toEqual([`${noun}Deleted`]);
    expect(s.fields()).toEqual(without);
    // Of three reverts that take back each other, the first stands.
    s.refused(created, [`was reverted by the entry ${idOf(undone)}`]);
    const marks = [created, undone, back, again].map(idOf);
    expect([...s.fleet.reverts.entries()]).toEqual(marks.slice(0, 3).map((entry, index) => [entry, marks[index + 1]]));
    // A deleted node is touched too, and nothing but nodes is.
    const nodes = new Set([f.nodeId('a'), f.nodeId('b')]);
    expect([...again.touched].filter((touched) => !nodes.has(touched))).toEqual([]);
    expect(noun === 'Node' ? [...again.touched] : [f.nodeId('a')]).toEqual([f.nodeId('a')]);
    expect(dumpFleet(s.fleet)).toBe(dumpFleet(f.foldOf(s.log)));
  });

  it('that created it can be reverted anew once its revert was reverted', () => {
    const s = site(...kind.prepare);
    const without = s.fields();
    const created = s.write(kind.create);
    s.undo(s.undo(created));
    const second = s.undo(created);
    expect(s.fields()).toEqual(without);
    s.refused(created, [`was reverted by the entry ${idOf(second)}`]);
  });

  it('that changed it is undone by the opposite change', () => {
    const s = site(...kind.prepare, kind.create);
    const [before, indexesBefore] = [s.fields(), dumpIndexes(s.fleet)];
    const edited = s.write(kind.edit);
    const [after, indexesAfter] = [s.fields(), dumpIndexes(s.fleet)];

    const undone = s.undo(edited);
    expect(typesOf(undone)).toEqual([`${noun}Updated`]);
    expect([s.fields(), dumpIndexes(s.fleet)]).toEqual([before, indexesBefore]);
    expect(s.undo(undone).events).toHaveLength(1);
    expect([s.fields(), dumpIndexes(s.fleet)]).toEqual([after, indexesAfter]);
    expect(s.state(edited)?.version).toBe(4);
  });

  it('that deleted it is undone by bringing it back as it was, with its id, its age and the next version', () => {
    const s = site(...kind.prepare);
    const created = s.write(kind.create);
    s.write(kind.edit);
    const [there, indexesThere] = [s.fields(), dumpIndexes(s.fleet)];
    const deleted = s.write(kind.remove);
    expect(s.state(created)).toBeUndefined();

    const back = s.undo(deleted);
    expect(typesOf(back)).toEqual([`${noun}Restored`]);
    expect([s.fields(), dumpIndexes(s.fleet)]).toEqual([there, indexesThere]);
    expect(s.state(created)).toMatchObject({
      id: resourceOf(created.events[0]).id,
      version: 4,
      created_at: timeOf(created),
      updated_at: timeOf(back),
    });
    expect(back.events[0].data['former']).toEqual({ version: 3, created_at: timeOf(created) });
    expect(s.state(created)).not.toHaveProperty('former');
    expect(dumpFleet(s.fleet)).toBe(dumpFleet(f.foldOf(s.log)));

    // What exists is not brought back, and an event that does so changes nothing.
    const undo = undoOf(deleted.events[0]);
    if (undo?.kind !== 'restore') throw new Error('a delete is undone by bringing back');
    const again = f.perform(s.fleet, undo.command({ version: 3, created_at: '' }) as FleetCommand);
    expect(again).toMatchObject({ kind: 'refused', refusal: { code: 'conflict' } });
    expect(again.kind === 'refused' ? again.refusal.message : '').toMatch(/ exists$/);
    const state = s.state(created);
    s.append(...(back.events as unknown as readonly FleetEvent[]));
    expect(s.state(created)).toEqual(state);
  });

  it('is not undone when the resource is gone, or there again, or has later work', () => {
    const s = site(...kind.prepare);
    const created = s.write(kind.create);
    const edited = s.write(kind.edit);
    const { type, id } = resourceOf(created.events[0]);
    const name = s.fleet.nameOf(type, id) ?? '';
    s.refused(
      created,
      `there is later work on the ${type} "${name}": ${type}.update by the entry ${idOf(edited)}; revert it first`,
    );
    const deleted = s.write(kind.remove);
    const deletedBy = about(deleted);
    for (const entry of [created, edited]) {
      s.refused(entry, `the ${type} ${id} is gone`);
      s.refused(entry, `the ${type} ${id} is gone: ${type}.delete by the entry ${idOf(deleted)}`, { deletedBy });
    }
    const again = s.append(...(created.events as unknown as readonly FleetEvent[]));
    const last = s.write(kind.edit);
    s.refused(deleted, `the ${type} ${id} exists again: ${type}.update by the entry ${idOf(last)}`);
    s.refused(deleted, [`exists again: ${type}.create by the entry ${idOf(again)}`], { later: [about(again)] });
  });
});

describe('a node', () => {
  it('comes back with its policies, its override and its offset of generations', () => {
    const s = site(f.createNode('a'), f.createNode('b'));
    const id = f.nodeId('a');
    s.write(f.savePolicy('a', 443, ['tls']));
    s.write(f.savePolicy('a', 80, ['raw']));
    s.write(override('b', false));
    s.write(override('a', true, 4443));
    s.write({ type: 'RaiseNodeGeneration', id, reported: 500 }, agent);
    const there = s.fields();
    const { version: settingsVersion } = s.fleet.singletons.connectivity.value;
    const offset = s.fleet.tables.node.get(id)?.generation_offset;
    const generation = s.fleet.generationOf(id) ?? Infinity;
    expect(offset).toBeGreaterThan(400);
    const deleted = s.write(remove.node('a'));
    expect([...s.fleet.tables.listener_policy.ids()]).toEqual([]);
    expect(s.fleet.singletons.connectivity.value.nodes[id]).toBeUndefined();

    const back = s.undo(deleted);
    expect(s.fields()).toEqual(there);
    expect(back.events[0].data).toMatchObject({
      node_id: id,
      generation_offset: offset,
      override: { multiplex: true, multiplex_port: 4443 },
      policies: [{ listen_port: 443 }, { listen_port: 80 }],
    });
    expect([...back.touched]).toEqual([id]);
    expect(s.fleet.generationOf(id)).toBeGreaterThan(generation);
    expect(s.fleet.tables.node.get(id)?.generation_offset).toBe(offset);
    const policy = s.fleet.tables.listener_policy.get(f.policyIdOf('a', 80));
    const fresh = { version: 2, created_at: timeOf(back), updated_at: timeOf(back), name: f.policyIdOf('a', 80) };
    expect(policy).toMatchObject({ ...fresh, id: fresh.name, node_id: id });
    const settings = s.fleet.singletons.connectivity.value;
    expect(settings.version).toBe(settingsVersion);
    expect(Object.keys(settings.nodes)).toEqual([id, f.nodeId('b')].sort());
    expect(dumpFleet(s.fleet)).toBe(dumpFleet(f.foldOf(s.log)));

    // A second return brings nothing back that was removed since.
    s.write(f.deletePolicy('a', 80));
    s.write(override('a', null));
    s.append(...(back.events as unknown as readonly FleetEvent[]));
    expect(s.fleet.tables.listener_policy.has(f.policyIdOf('a', 80))).toBe(false);
    expect(Object.keys(s.fleet.singletons.connectivity.value.nodes)).toEqual([f.nodeId('b')]);
  });

  it('comes back without an override when it had none', () => {
    const s = site(f.createNode('a'));
    const settings = s.fleet.singletons.connectivity.value;
    const deleted = s.write(remove.node('a'));
    expect(s.fleet.singletons.connectivity.value).toBe(settings);
    s.undo(deleted);
    expect(s.fleet.singletons.connectivity.value).toBe(settings);
  });

  it('that was created with a PSK is deleted, and the PSK with it', () => {
    const s = site();
    const created = s.write(f.createNode('a', { psk: { fingerprint: 'ab', verifier: f.sealed } as never }));
    expect(typesOf(created)).toEqual(['NodeCreated', 'NodePskIssued']);
    expect(fieldsInTheWay(s.fleet, created)).toEqual([]);
    expect(changes(created, 'name')).toBe(true);
    expect(typesOf(s.undo(created))).toEqual(['NodeDeleted']);
  });

  it('has labels that are fields of their own: later work on others is kept', () => {
    const s = site(f.createNode('a', { labels: { site: 'x', old: '1' } }));
    const edited = s.write(f.updateNode('a', { labels: { site: 'y', added: '1' } }));
    const later = s.write(f.updateNode('a', { description: 'later', labels: { site: 'y', added: '1', rack: '7' } }));
    expect(s.undo(edited).events[0].data['changes']).toEqual({
      'labels.added': { from: '1', to: null },
      'labels.old': { from: null, to: '1' },
      'labels.site': { from: 'y', to: 'x' },
    });
    expect(s.fleet.tables.node.get(f.nodeId('a'))).toMatchObject({
      description: 'later',
      labels: { old: '1', rack: '7', site: 'x' },
    });
    // Without labels in the entry, labels stay as they are.
    const described = s.write(f.updateNode('a', { description: 'newest' }));
    expect(s.undo(described).events[0].data['changes']).toEqual({ description: { from: 'newest', to: 'later' } });
    s.write(f.updateNode('a', { labels: { rack: '8' } }));
    expect(fieldsInTheWay(s.fleet, later)).toEqual(['labels.rack']);
    s.refused(later, 'labels.rack: is now "8", the revert would set null; changed since');
    expect(fieldsInTheWay(s.fleet, edited)).toEqual(['labels.added', 'labels.site']);
  });

  it('is not brought back under a name that is taken, or with an override that no longer fits', () => {
    const s = site(f.createNode('a'), f.settings({ multiplex_port: 4443 }), override('a', true));
    const deleted = s.write(remove.node('a'));
    s.write(f.settings({ multiplex_port: null }));
    s.refused(deleted, [`expected a multiplex_port for node ${f.nodeId('a')}`]);
    s.write(f.settings({ multiplex_port: 4443 }));
    s.write(f.createNode('other', { name: 'a' }));
    s.refused(deleted, ['"a"']);
  });

  it('is taken back through every event of an entry, the newest first, each on what the others leave', () => {
    const s = site(f.createNode('a', { description: 'one' }));
    const change = (from: string, to: string) =>
      ({ type: 'NodeUpdated', data: { node_id: f.nodeId('a'), changes: { description: { from, to } } } }) as const;
    const twice = s.append(change('one', 'two'), change('two', 'three'));
    const undone = s.undo(twice);
    expect(undone.events.map(({ data }) => data)).toEqual([change('three', 'two').data, change('two', 'one').data]);
    expect(s.fleet.tables.node.get(f.nodeId('a'))).toMatchObject({ description: 'one', version: 5 });
    // What an entry left as it was needs no event.
    const nothing = s.append(change('one', 'one'));
    expect(s.decide(nothing)).toEqual({ ok: true, value: [] });
    const history = s.historyOf(nothing);
    expect(runSync(previewReverts(s.fleet, [revertOf(nothing, history)]))).toEqual({ ok: true, value: [] });
    expect(history.version).toBe(6);
    s.refused(nothing, ['was changed while its history was read'], { version: 5 });
    const deleted = s.write(remove.node('a'));
    expect([versionOfSubject(s.fleet, deleted), fieldsInTheWay(s.fleet, twice)]).toEqual([undefined, []]);
  });

  it('that is not there is deleted without a trace', () => {
    const s = site(f.createNode('a'));
    const deleted = s.write(remove.node('a'));
    const command = f.recorded(s.fleet, deleted.events as unknown as readonly FleetEvent[]);
    expect([...applyCommand(s.fleet, command)]).toEqual([]);
  });
});

describe('a deploy', () => {
  const id = f.chainId('one');
  const first = f.createChain('one', [f.hop('a', 80)]);

  it('is rolled back to what was deployed before, whatever was edited since', () => {
    const s = site(...twoNodes, first, f.deployChain('one'));
    const before = s.fleet.tables.l4_chain.get(id)?.deployed;
    s.write(f.updateChain('one', { hops: [f.hop('b', 81)] }));
    const second = s.write(f.deployChain('one'));
    s.write(f.updateChain('one', { hops: [f.hop('b', 82)] }));
    const undone = s.undo(second);
    expect(typesOf(undone)).toEqual(['ChainDeployed']);
    expect(s.fleet.tables.l4_chain.get(id)).toMatchObject({
      hops: [{ listen_port: 82 }],
      deployed: { hops: before?.hops, at: timeOf(undone), deployment_id: idOf(undone) },
      version: 6,
    });
    expect([...undone.touched].sort()).toEqual([f.nodeId('a'), f.nodeId('b')].sort());
    const data = undone.events[0].data as { readonly nodes: readonly { readonly node_id: string }[] };
    expect(data.nodes.map(({ node_id }) => node_id).sort()).toEqual([f.nodeId('a'), f.nodeId('b')].sort());
    s.undo(undone);
    expect(s.fleet.tables.l4_chain.get(id)?.deployed?.hops).toMatchObject([{ listen_port: 81 }]);
  });

  it('that was the first is rolled back to nothing, also of a disabled chain', () => {
    for (const enabled of [true, false]) {
      const s = site(f.createNode('a'), first);
      const deployed = s.write(f.deployChain('one'));
      if (!enabled) s.write(f.updateChain('one', { enabled }));
      const undone = s.undo(deployed);
      expect(s.fleet.tables.l4_chain.get(id)).toMatchObject({ enabled, deployed: null });
      s.undo(undone);
      expect(s.fleet.tables.l4_chain.get(id)).toMatchObject({ enabled, deployed: { hops: [{ listen_port: 80 }] } });
    }
  });

  it('is not rolled back when another one came since, or the chain is gone', () => {
    const s = site(...twoNodes, first);
    const deployed = s.write(f.deployChain('one'));
    s.write(f.updateChain('one', { hops: [f.hop('b', 81)] }));
    const second = s.write(f.deployChain('one'));
    const changedBy = new Map([['deployed', idOf(second)]]);
    s.refused(
      deployed,
      ['deployed: is now {', 'the revert would set null; changed since by the entry ' + idOf(second)],
      { changedBy },
    );
    s.undo(second);
    s.undo(deployed);
    s.refused(second, ['was reverted']);
    const third = s.write(f.deployChain('one'));
    const toNothing = s.undo(third);
    s.write(f.deployChain('one'));
    s.refused(toNothing, ['deployed: is now {']);
    s.write(remove.chain('one'));
    s.refused(third, ['was reverted']);
    s.refused(toNothing, `the l4_chain ${id} is gone`);
  });

  it('is not rolled back to what no longer runs', () => {
    const s = site(...twoNodes, f.createUpstream('up'));
    s.write(f.createChain('one', [f.hop('a', 80)], { target: { upstream_id: f.upstreamId('up') } }));
    s.write(f.deployChain('one'));
    s.write(f.updateChain('one', { target: { endpoint: '192.0.2.2:80' }, hops: [f.hop('a', 81)] }));
    const away = s.write(f.deployChain('one'));
    const deleted = s.write(remove.upstream('up'));
    s.refused(away, [f.upstreamId('up')]);
    s.undo(deleted);
    const two = s.write(f.createChain('two', [f.hop('a', 80)]));
    s.refused(away, ['port 80', '"two"']);
    s.undo(two);
    expect(typesOf(s.undo(away))).toEqual(['ChainDeployed']);
  });

  it('is not rolled back without its chain', () => {
    f.given().when({ type: 'RollBackChain', id, definition: null }).thenRefused('not_found', id);
  });

  it('is not rolled back to a hop that cannot be dialled, unless the chain is disabled', () => {
    const s = site(...twoNodes, f.createChain('one', [f.hop('a', 80), f.hop('b', 80)]), f.deployChain('one'));
    s.write(f.updateChain('one', { hops: [f.hop('a', 80)] }));
    const away = s.write(f.deployChain('one'));
    s.write(f.updateNode('b', { address: null }));
    s.refused(away, ['dial_addr']);
    s.write(f.updateChain('one', { enabled: false }));
    s.undo(away);
    expect(s.fleet.tables.l4_chain.get(id)?.deployed?.hops).toHaveLength(2);
  });
});

describe('a chain that comes back', () => {
  it('needs its nodes, its name, its listeners, and what it had deployed', () => {
    const target = { upstream_id: f.upstreamId('up') };
    const s = site(...twoNodes, f.createUpstream('up'), f.createChain('one', [f.hop('a', 80)], { target }));
    s.write(f.deployChain('one'));
    s.write(f.updateChain('one', { target: { endpoint: '192.0.2.2:80' } }));
    const deleted = s.write(remove.chain('one'));
    const node = s.write(remove.node('a'));
    s.refused(deleted, [f.nodeId('a')]);
    s.undo(node);
    // Only the deployed definition has it.
    const upstream = s.write(remove.upstream('up'));
    s.refused(deleted, [f.upstreamId('up')]);
    s.undo(upstream);
    const taken = s.write(f.createChain('other', [f.hop('b', 9)], { name: 'one' }));
    s.refused(deleted, ['"one"']);
    s.undo(taken);
    const listening = s.write(f.createChain('other', [f.hop('a', 80)]));
    s.refused(deleted, ['port 80', '"other"']);
    s.undo(listening);
    expect(typesOf(s.undo(deleted))).toEqual(['ChainRestored']);
  });

  it('must be dialled as it was deployed, unless it is disabled', () => {
    for (const enabled of [true, false]) {
      const s = site(...twoNodes, f.createChain('one', [f.hop('a', 80), f.hop('b', 80)]), f.deployChain('one'));
      if (!enabled) s.write(f.updateChain('one', { enabled }));
      const deleted = s.write(remove.chain('one'));
      s.write(f.updateNode('b', { address: null }));
      if (enabled) s.refused(deleted, ['dial_addr']);
      else expect(typesOf(s.undo(deleted))).toEqual(['ChainRestored']);
    }
  });
});

describe('other resources', () => {
  it('come back only with what they refer to, under a name that is free', () => {
    const s = site(...twoNodes, ...l3.identity());
    s.write(f.createRoute('site', [f.routeHop('a', 8080)]));
    const route = s.write(f.deleteRoute('site'));
    s.write(f.savePolicy('a', 443, ['tls']));
    const policy = s.write(f.deletePolicy('a', 443));
    s.write(l3.createNetwork('net', network, [l3.tunnel('a', 'b')]));
    const net = s.write(l3.deleteNetwork('net'));
    const identity = s.write(f.deleteCredential('identity'));
    s.refused(net, ['credential_id']);
    const keys = s.write(f.deleteCredential('identity key'));
    s.refused(identity, ['x25519_credential_id']);
    const node = s.write(remove.node('a'));
    s.refused(route, [f.nodeId('a')]);
    s.refused(policy, `nodeId: expected the id of a node, there is no node ${f.nodeId('a')}`);
    const upstream = s.write(f.createUpstream('up'));
    const gone = s.write(remove.upstream('up'));
    s.write(f.createUpstream('other', { name: 'up' }));
    s.refused(gone, ['name: "up" is already the name of']);
    s.refused(upstream, ['is gone']);
    s.write(f.createX25519('other', { name: 'identity key' }));
    s.refused(keys, ['"identity key"']);
    s.write(f.updateCredential('other', { name: 'other' }));
    for (const entry of [node, keys, identity, net, policy, route]) expect(s.undo(entry).events).toHaveLength(1);
  });

  it('include policies: one that went with its node is gone', () => {
    const s = site(f.createNode('a'));
    const created = s.write(f.savePolicy('a', 443, ['tls']));
    const edited = s.write(f.savePolicy('a', 443, ['raw']));
    s.write(remove.node('a'));
    for (const entry of [created, edited]) s.refused(entry, [`the listener_policy ${f.policyIdOf('a', 443)} is gone`]);
  });

  it('include policies: no more come back than a node may have', () => {
    const s = site(f.createNode('a'), f.savePolicy('a', 1000, ['tls']));
    const deleted = s.write(f.deletePolicy('a', 1000));
    f.performAll(
      s.fleet,
      Array.from({ length: 256 }, (_, index) => f.savePolicy('a', 1 + index, ['tls'])),
    );
    s.refused(deleted, 'nodeId: the node "a" has 256 listener policies; expected fewer');
  });
});

describe('the connectivity settings', () => {
  it('get back each field and each override that an entry changed', () => {
    const s = site(...twoNodes, f.settings({ heartbeat_interval_secs: 20 }), override('a', true, 4443));
    const before = s.fields();
    const [a, b] = [f.nodeId('a'), f.nodeId('b')];
    const edited = s.write(
      f.settings({
        heartbeat_interval_secs: 30,
        offline_after_secs: 200,
        nodes: [
          { node_id: a, multiplex: null },
          { node_id: b, multiplex: true, multiplex_port: 5555 },
        ],
      }),
    );
    const after = s.fields();
    const undone = s.undo(edited);
    expect(undone.events[0].data['changes']).toEqual({
      heartbeat_interval_secs: { from: 30, to: 20 },
      offline_after_secs: { from: 200, to: null },
      [`nodes.${a}`]: { from: null, to: { multiplex: true, multiplex_port: 4443 } },
      [`nodes.${b}`]: { from: { multiplex: true, multiplex_port: 5555 }, to: null },
    });
    expect(s.fields()).toEqual(before);
    s.undo(undone);
    expect(s.fields()).toEqual(after);
  });

  it('keep later work on other fields, and name that on the same', () => {
    const s = site(...twoNodes);
    const edited = s.write(f.settings({ metrics_interval_secs: 90, multiplex_port: 4443 }));
    const ofA = s.write(override('a', false));
    const later = s.write(f.settings({ metrics_interval_secs: 120 }));
    s.refused(
      edited,
      `metrics_interval_secs: is now 120, the revert would set 60; changed since by the entry ${idOf(later)}`,
      { changedBy: new Map([['metrics_interval_secs', idOf(later)]]) },
    );
    s.undo(later);
    s.undo(edited);
    expect(s.fleet.singletons.connectivity.value.nodes[f.nodeId('a')]).toEqual({
      multiplex: false,
      multiplex_port: null,
    });
    s.write(override('a', true, 4444));
    s.refused(
      ofA,
      `nodes.${f.nodeId('a')}: is now {"multiplex":true,"multiplex_port":4444}, the revert would set null; changed since`,
    );
    s.write(remove.node('a'));
    s.refused(ofA, [`nodes.${f.nodeId('a')}: is now null, the revert would set null; changed since`]);
  });

  it('are decided as they were when the history was read', () => {
    const s = site();
    const edited = s.write(f.settings({ metrics_interval_secs: 90 }));
    expect(s.historyOf(edited).version).toBe(1);
    s.refused(edited, 'the resource was changed while its history was read; try again', { version: 0 });
  });
});

describe('a refusal', () => {
  it('names every field in the way, with the entries that are known', () => {
    const s = site(f.createUpstream('up'));
    const edited = s.write(f.updateUpstream('up', { endpoint: 'b.example:1', server_names: ['b'], enabled: false }));
    const later = s.write(f.updateUpstream('up', { endpoint: 'c.example:1', server_names: ['c'] }));
    expect(fieldsInTheWay(s.fleet, edited)).toEqual(['endpoint', 'server_names']);
    expect(fieldsInTheWay(s.fleet, later)).toEqual([]);
    s.refused(
      edited,
      'endpoint: is now "c.example:1", the revert would set "up.example:443"; ' +
        `changed since by the entry ${idOf(later)}. ` +
        'server_names: is now ["c"], the revert would set []; changed since',
      { changedBy: new Map([['endpoint', idOf(later)]]) },
    );
  });

  it('names fifty fields and counts the others', () => {
    const labels = (count: number, value: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`l${String(index).padStart(2, '0')}`, value]));
    for (const count of [50, 51, 62]) {
      const s = site(f.createNode('a'));
      const edited = s.write(f.updateNode('a', { labels: labels(count, 'x') }));
      s.write(f.updateNode('a', { labels: labels(count, 'y') }));
      const decision = s.decide(edited);
      const sentences = decision.ok ? [] : decision.error.message.split('. ');
      expect(sentences).toHaveLength(count === 50 ? 50 : 51);
      expect(sentences[49]).toBe('labels.l49: is now "y", the revert would set null; changed since');
      if (count > 50) expect(sentences[50]).toBe(`${count - 50} more fields`);
    }
  });

  it('cuts long values', () => {
    const shownOf = (length: number): string => {
      const s = site(f.createNode('a'));
      const edited = s.write(f.updateNode('a', { description: 'x' }));
      s.write(f.updateNode('a', { description: 'y'.repeat(length) }));
      const decision = s.decide(edited);
      return decision.ok ? '' : decision.error.message;
    };
    expect(shownOf(198)).toContain(`is now "${'y'.repeat(198)}", the revert`);
    expect(shownOf(199)).toContain(`is now "${'y'.repeat(199)}…, the revert`);
    expect(shownOf(400)).toContain(`is now "${'y'.repeat(199)}…, the revert`);
  });

  it('names ten entries of later work, oldest first, and counts the others', () => {
    for (const count of [10, 11, 13]) {
      const s = site();
      const created = s.write(f.createUpstream('up'));
      const edits = Array.from({ length: count }, (_, index) =>
        s.write(f.updateUpstream('up', { endpoint: `e${index}.example:1` })),
      );
      const named = edits.slice(0, 10).map((edit) => `l4_upstream.update by the entry ${idOf(edit)}`);
      const more = count === 10 ? [] : [`${count - 10} more`];
      s.refused(
        created,
        `there is later work on the l4_upstream "up": ${[...named, ...more].join(', ')}; revert it first`,
      );
    }
  });

  it('does not count as later work what was reverted, or what agents or the service did', () => {
    const s = site();
    const created = s.write(f.createNode('a'));
    s.write({ type: 'ReportNodeAddress', id: f.nodeId('a'), public_ipv4: '192.0.2.7', public_ipv6: null }, agent);
    s.write(f.updateNode('a', { description: 'by the service' }), { type: 'system', id: 's', name: 's' });
    s.write({ type: 'RefreshNodeConfig', id: f.nodeId('a') });
    const edited = s.write(f.updateNode('a', { name: 'b' }));
    const undone = s.undo(edited);
    const redone = s.undo(undone);
    s.refused(created, [`"b": node.update by the entry ${idOf(edited)}; revert`]);
    s.undo(redone);
    expect(typesOf(s.undo(created))).toEqual(['NodeDeleted']);
  });

  it('of an ordinary rule is a conflict, unless it says that something is too large', () => {
    const s = site(f.createNode('b'), f.createNode('a'));
    const renamed = s.write(f.updateNode('b', { name: 'new' }));
    s.write(f.createNode('other', { name: 'b' }));
    s.refused(renamed, ['name: "b" is already the name of node']);
    const chain = f.createChain('one', [f.hop('a', 80)], { target: { upstream_id: f.upstreamId('up') } });
    const upstream = s.write(f.createUpstream('up'));
    s.write(chain);
    const retargeted = s.write(f.updateChain('one', { target: { endpoint: '192.0.2.2:80' } }));
    s.undo(upstream);
    // To a request, this would be an invalid body.
    s.refused(retargeted, [f.upstreamId('up')]);
    const description = { from: 'x'.repeat(200 * 1024), to: 'short' };
    const shortened = s.append({
      type: 'NodeUpdated',
      data: { node_id: f.nodeId('a'), changes: { description } },
    });
    s.refused(shortened, ['the definition of the node would be'], {}, 'payload_too_large');
  });

  it('says why a kind of entry cannot be reverted', () => {
    const s = site(f.createNode('a'), f.createX25519('keys'));
    const id = f.nodeId('a');
    const never: readonly (readonly [FleetCommand, string])[] = [
      [{ type: 'IssueNodePsk', id, fingerprint: 'ab', verifier: f.sealed } as never, 'a PSK can be replaced'],
      [{ type: 'RefreshNodeConfig', id }, 'a refresh changes nothing'],
      [{ type: 'ReportNodeAddress', id, public_ipv4: '192.0.2.7', public_ipv6: null }, 'a fact reported by the agent'],
      [{ type: 'RaiseNodeGeneration', id, reported: 90 }, 'a fact reported by the agent'],
      [f.updateCredential('keys', f.x25519Keys('other')), 'a key or certificate can be replaced by another one'],
    ];
    for (const [command, because] of never) {
      const entry = s.write(command);
      s.refused(entry, ['the entry cannot be reverted: ', because]);
    }
    const [first] = s.log;
    if (first === undefined) throw new Error('the log is empty');
    const elsewhere = { ...first, stream: 'elsewhere' } as unknown as RecordedCommand;
    s.refused(elsewhere, 'the entry cannot be reverted: it is none of the audit');
  });

  it('is not what a delete without a known past gets', () => {
    const s = site(f.createNode('a'));
    const deleted = s.write(remove.node('a'));
    const { former: _, ...history } = s.historyOf(deleted);
    const before = dumpFleet(s.fleet);
    expect(() => decideRevert(s.fleet, revertOf(deleted, history))).toThrow('what was before it');
    expect(dumpFleet(s.fleet)).toBe(before);
  });
});

describe('a revert that is tried', () => {
  it('is decided and leaves the fleet unchanged', () => {
    const s = site(f.createNode('a'), f.createChain('one', [f.hop('a', 80)]), f.deployChain('one'));
    const edited = s.write(f.updateChain('one', { name: 'two' }));
    const deleted = s.write(remove.chain('one'));
    const before = dumpFleet(s.fleet);
    const attempt = (entry: RecordedCommand) => runSync(previewReverts(s.fleet, [revertOf(entry, s.historyOf(entry))]));
    const [decided] = valueOf(s.decide(deleted));
    expect(valueOf(attempt(deleted))).toMatchObject([{ events: [decided] }]);
    expect(decided).toMatchObject({ type: 'ChainRestored' });
    expect(attempt(edited)).toMatchObject({ ok: false, error: { code: 'conflict' } });
    expect(dumpFleet(s.fleet)).toBe(before);
  });

  it('is refused when a configuration would become too large', () => {
    const s = site(f.createNode('a'), f.createChain('one', [f.hop('a', 80)]));
    const endpoint = `${'x'.repeat(9 * 1024 * 1024)}:80`;
    const definition = { payload: 'tcp', hops: [f.hop('a', 80)], target: { endpoint } } as const;
    s.append({
      type: 'ChainDeployed',
      data: { chain_id: f.chainId('one'), chain_version: 1, definition: { from: null, to: definition }, nodes: [] },
    });
    const deleted = s.write(remove.chain('one'));
    const { value: revision } = s.fleet.revision;
    const attempt = runSync(previewReverts(s.fleet, [revertOf(deleted, s.historyOf(deleted))]));
    expect(attempt).toMatchObject({ ok: false, error: { code: 'conflict' } });
    expect(attempt.ok ? '' : attempt.error.message).toContain('the configuration of node "a" would be');
    expect([s.fleet.revision.value, s.fleet.tables.l4_chain.size]).toEqual([revision, 0]);
  });

  it('is shown change by change, with the resource', () => {
    const s = site(f.createNode('a', { labels: { site: 'x' } }));
    const preview = (entry: RecordedCommand) => {
      const decision = s.decide(entry);
      return decision.ok ? previewOf(s.fleet, hypothetical(s.fleet, decision.value)) : [];
    };
    const id = f.nodeId('a');
    const node = { type: 'node', id, name: 'a' };
    const edited = s.write(f.updateNode('a', { description: 'text', labels: {} }));
    expect(preview(edited)).toEqual([
      { resource: node, path: 'description', before: 'text', after: null },
      { resource: node, path: 'labels.site', before: null, after: 'x' },
    ]);
    const saved = s.write(f.savePolicy('a', 443, ['tls']));
    const policy = { type: 'listener_policy', id: f.policyIdOf('a', 443), name: f.policyIdOf('a', 443) };
    expect(preview(saved)[0]).toMatchObject({ resource: policy, path: 'node_id', before: id, after: null });
    const settings = s.write(f.settings({ metrics_interval_secs: 90 }));
    expect(preview(settings)).toMatchObject([
      { resource: { type: 'connectivity' }, path: 'metrics_interval_secs', before: 90, after: 60 },
    ]);
    const deleted = s.write(remove.node('a'));
    expect(preview(deleted)[0]).toMatchObject({ resource: node, before: null });
  });
});

it('events that are tried out follow on the log, as one command of nobody', () => {
  const { fleet } = f.given(f.createNode('a'), f.createNode('b'));
  const created = { type: 'NodeCreated', data: {} };
  const { events } = hypothetical(fleet, [created, created]);
  const [revision, position] = [fleet.revision.value, fleet.position.value];
  expect(events).toMatchObject([
    { revision: revision + 1, position: position + 1, metadata: { command: { index: 0, count: 2 } } },
    { revision: revision + 2, position: position + 2, metadata: { command: { index: 1, count: 2 } } },
  ]);
  expect(events[0].metadata.actor.type).toBe('system');
  expect(() => hypothetical(fleet, [])).toThrow(RangeError);
});

describe('what an entry did', () => {
  const s = () => site(f.createNode('a'), f.createNode('b'));

  it('is told field by field', () => {
    const { write } = s();
    const edited = write(f.updateNode('a', { description: 'text' }));
    expect(['description', 'name', 'labels.x'].map((field) => changes(edited, field))).toEqual([true, false, false]);
    const refreshed = write({ type: 'RefreshNodeConfig', id: f.nodeId('a') });
    expect(changes(refreshed, 'name')).toBe(false);
    const deleted = write(remove.node('a'));
    expect(changes(deleted, 'name')).toBe(true);
    expect([edited, refreshed, deleted].map(deletes)).toEqual([false, false, true]);
  });

  it('tells whether a node went with a policy or moved an override', () => {
    const one = s();
    const saved = one.write(f.savePolicy('a', 443, ['tls']));
    const overridden = one.write(override('a', false));
    const deleted = one.write(remove.node('a'));
    const back = one.undo(deleted);
    const other = one.write(remove.node('b'));
    const id = f.policyIdOf('a', 443);
    const all = [saved, overridden, deleted, back, other];
    expect(all.map((entry) => deletesPolicy(entry, id))).toEqual([false, false, true, false, false]);
    expect(deletesPolicy(deleted, f.policyIdOf('a', 444))).toBe(false);
    expect(all.map(movesOverride)).toEqual([false, false, true, true, false]);
    // Whichever of its events did it.
    const both = f.recorded(one.fleet, [saved, deleted].flatMap(({ events }) => events) as unknown as FleetEvent[]);
    expect([deletes(both), deletesPolicy(both, id), movesOverride(both)]).toEqual([true, true, true]);
  });

  it('is work when an operator created, changed or deployed', () => {
    expect(['node.update', 'l4_chain.deploy'].map(verbOf)).toEqual(['update', 'deploy']);
    const entry = (id: string, action: string, actor: Actor['type'] = 'user'): EntryAbout => ({
      id,
      action,
      actor,
      at: '',
      position: 0,
      events: 1,
      isAboutSeveral: false,
    });
    const later = [
      entry('8', 'node.update', 'agent'),
      entry('7', 'node.update', 'system'),
      entry('6', 'node.revert'),
      entry('5', 'node.delete'),
      entry('4', 'node.update'),
      entry('3', 'node.deploy'),
      entry('2', 'node.update'),
      entry('1', 'node.create'),
    ];
    const work = laterWork({ version: 1, later, changedBy: new Map() }, (id) => id === '2');
    expect(work.map(({ id }) => id)).toEqual(['1', '3', '4']);
  });
});

/**
 * Compares the log and both instances with the book: acknowledged commands are in the log exactly once and complete,
 * refused ones are not, unknown ones at most once; the read models equal a fresh fold, generations included.
 */
import type { RestClient } from '../../../scripts/stack/rest-client.js';
import { applyCommand } from '../../../src/domain/fleet/apply.js';
import { emptyFleet, type Fleet } from '../../../src/domain/fleet/fleet.js';
import { readCommand } from '../../../src/domain/log/upcast.js';
import { lastEvent, streams, type RecordedCommand } from '../../../src/kernel/event.js';
import { canonicalJson, type Json } from '../../../src/kernel/json.js';
import type { EventStore } from '../../../src/storage/event-store.js';
import { ownEvent } from '../../../src/storage/broken-log.js';
import { createCommandAssembler } from '../../../src/storage/follow.js';
import type { Attempt } from './book.js';
import type { ShownNode } from './generations.js';

/** All commands of the fleet. @throws BrokenLogError when one is incomplete */
export async function readFleetLog(store: EventStore): Promise<readonly RecordedCommand[]> {
  const assembler = createCommandAssembler();
  const commands: RecordedCommand[] = [];
  const everything = { direction: 'forward', from: 'start', maxCount: Number.MAX_SAFE_INTEGER } as const;
  for await (const event of store.read(streams.fleet, everything)) commands.push(...assembler.add([ownEvent(event)]));
  if (assembler.pending()) throw new Error('the log ends inside a command');
  return commands;
}

function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** @returns the deviations of the log from the book, as sentences */
export function judgeLog(commands: readonly RecordedCommand[], attempts: readonly Attempt[]): readonly string[] {
  const faults: string[] = [];
  const written = groupBy(commands, ({ events }) => events[0].metadata.request_id);
  const of = ({ requestId }: Attempt): readonly RecordedCommand[] => written.get(requestId) ?? [];
  const groups = groupBy(attempts, ({ command, requestId }) =>
    command.key === undefined ? requestId : `${command.path} ${command.key}`,
  );
  for (const group of groups.values()) {
    const recorded = group.flatMap(of);
    const acknowledged = group.find(({ outcome }) => outcome === 'acknowledged');
    const story = group.map(({ instance, outcome, said }) => `${instance}: ${outcome} (${said})`).join(', ');
    const where = `${group[0]?.command.method} ${group[0]?.command.path} [${story}]`;
    if (recorded.length > 1) faults.push(`${where} is in the log ${recorded.length} times`);
    for (const attempt of group) {
      if (attempt.outcome === 'refused' && of(attempt).length > 0)
        faults.push(`${where} was refused but is in the log`);
    }
    if (acknowledged === undefined) continue;
    const [command] = recorded;
    if (command === undefined) {
      faults.push(`${where} was acknowledged but is not in the log`);
      continue;
    }
    const { resourceId, position } = acknowledged;
    if (resourceId !== undefined && !JSON.stringify(command.events[0].data).includes(resourceId)) {
      faults.push(`${where} answered ${resourceId}, which its event does not name`);
    }
    // A later position is allowed; with an earlier one a client that waits for it would read too soon.
    if (position === undefined || !(position >= lastEvent(command).position)) {
      faults.push(`${where} answered position ${position}, but its event is at ${lastEvent(command).position}`);
    }
  }
  const keys = groupBy(commands, ({ events }) => events[0].metadata.idempotency?.key_hash);
  for (const [key, { length }] of keys) {
    if (key !== undefined && length > 1) faults.push(`the Idempotency-Key of hash ${key} has ${length} commands`);
  }
  const ids = groupBy(commands, ({ events }) => events[0].metadata.command.id);
  for (const [id, { length }] of ids) if (length > 1) faults.push(`command ${id} is in the log ${length} times`);
  return faults;
}

export function freshFold(commands: readonly RecordedCommand[]): Fleet {
  const fleet = emptyFleet();
  for (const command of commands) {
    applyCommand(fleet, readCommand(command));
  }
  return fleet;
}

interface Visible {
  readonly [name: string]: Json;
}

/** Fields that change without a command. */
const telemetry = ['cpu_usage', 'memory_usage', 'uptime_seconds', 'last_seen_at'];

/** All answers of an instance about the fleet: lists, settings, audit, deployments and each node's configuration. */
export async function readVisible(client: RestClient): Promise<Visible> {
  const visible: { [name: string]: Json } = {};
  const list = async (path: string): Promise<readonly { readonly id: string }[]> => {
    const items: { readonly id: string }[] = [];
    for (let page = 1; ; page += 1) {
      const answer = await client.call<{ items: { id: string }[]; total?: number }>('GET', `${path}?page=${page}`);
      items.push(...answer.items);
      if (answer.items.length === 0 || items.length >= (answer.total ?? 0)) break;
    }
    visible[path] = items.map((item) =>
      Object.fromEntries(Object.entries(item).filter(([name]) => !telemetry.includes(name))),
    ) as Json;
    return items;
  };
  const one = async (path: string): Promise<void> => {
    visible[path] = await client.call<Json>('GET', path);
  };
  await list('/api/l4-upstreams');
  await list('/api/audit');
  await one('/api/settings/connectivity');
  for (const { id } of await list('/api/l4-chains')) await one(`/api/l4-chains/${id}/deployments`);
  for (const { id } of await list('/api/nodes')) await one(`/api/nodes/${id}/config`);
  return visible;
}

/** @returns where the answers of two instances differ, as sentences */
export function differences(a: Visible, b: Visible): readonly string[] {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((path) => {
    const [left, right] = [textOf(a[path]), textOf(b[path])];
    if (left === right) return [];
    let at = 0;
    while (left[at] === right[at]) at += 1;
    const around = (text: string): string => text.slice(Math.max(0, at - 80), at + 80);
    return [`${path}: one instance shows …${around(left)}…, the other …${around(right)}…`];
  });
}

const textOf = (value: Json | undefined): string => (value === undefined ? 'nothing' : canonicalJson(value));

/** @returns where an instance's answers differ from a fresh fold, as sentences */
export function judgeVisible(visible: Visible, fleet: Fleet): readonly string[] {
  const lists = [
    ['/api/nodes', fleet.tables.node],
    ['/api/l4-upstreams', fleet.tables.l4_upstream],
    ['/api/l4-chains', fleet.tables.l4_chain],
  ] as const;
  const faults = lists.flatMap(([path, table]) => {
    const items = (visible[path] ?? []) as unknown as readonly { readonly id: string; readonly version: number }[];
    const theirs = items.map(({ id, version }) => `${id} ${version}`).sort();
    const ours = [...table.values()].map(({ id, version }) => `${id} ${version}`).sort();
    return theirs.join() === ours.join() ? [] : [`${path} shows ${theirs.join()}, the log says ${ours.join()}`];
  });
  const nodes = (visible['/api/nodes'] ?? []) as unknown as readonly ShownNode[];
  for (const { id, generation } of nodes) {
    const ours = fleet.generationOf(id);
    if (generation !== ours) faults.push(`node ${id} shows generation ${generation}, the log says ${ours}`);
    const config = visible[`/api/nodes/${id}/config`] as unknown as { readonly generation: number } | undefined;
    if (config?.generation !== ours)
      faults.push(`the configuration of ${id} has generation ${config?.generation}, not ${ours}`);
  }
  return faults;
}

/**
 * A random fleet of 200 nodes and 500 resources: no two listeners overlap, neither as the resources claim them nor as they
 * are in snapshots (`docs/contract/domain.md#listeners-and-collisions`). Both are checked pair by pair, without the
 * service's indexes.
 */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { resourceTypes, type FleetCommand } from '../../src/domain/fleet/resources.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { splitHostPort } from '../../src/kernel/host-port.js';
import type { NodeSnapshot } from '../../src/domain/snapshot/snapshot.js';
import { collidingPairs, worldOf } from '../support/collision-oracle.js';
import * as f from '../support/fleet.js';
import { commandOf, histories, type Move } from '../support/fleet-histories.js';

const nodeCount = 200;
const resourceCount = 500;

const { fleet } = f.given();
const resources = (): number =>
  resourceTypes.filter((type) => type !== 'node').reduce((sum, type) => sum + fleet.tables[type].size, 0);

/** Names are drawn from few; here they are not what limits the fleet. */
const renamed = (command: FleetCommand, step: number): FleetCommand =>
  command.type.startsWith('Create') && 'name' in command ? { ...command, name: `${command.name} ${step}` } : command;

/** Credentials and upstreams claim nothing, and one global multiplex port would leave little to collide with. */
const wanted = ({ kind }: Move): boolean => {
  const { credential, l4_upstream } = fleet.tables;
  if (kind === 'createCredential') return credential.size < 40;
  if (kind === 'createUpstream') return l4_upstream.size < 40;
  return kind !== 'deleteNode' && kind !== 'settings';
};

let collisions = 0;
function attempt(command: FleetCommand | undefined): void {
  if (command === undefined) return;
  const performed = f.perform(fleet, command);
  if (performed.kind === 'refused' && performed.refusal.message.includes('collides with')) collisions += 1;
}

beforeAll(() => {
  f.performAll(
    fleet,
    Array.from({ length: nodeCount }, (_, index) => f.createNode(`node ${index}`)),
  );
  const moves = fc.sample(histories(60), { seed: 11, numRuns: 400 }).flat();
  for (const [step, move] of moves.entries()) {
    if (resources() >= resourceCount) break;
    const command = wanted(move) ? commandOf(fleet, move, step) : undefined;
    attempt(command === undefined ? undefined : renamed(command, step));
  }
  for (const id of fleet.tables.l4_chain.ids()) attempt({ type: 'DeployChain', id, ifMatch: undefined });
});

interface Occupied {
  readonly rule: string;
  readonly resource: string;
  readonly transport: 'tcp' | 'udp';
  readonly addr: string;
  readonly port: number;
  /** What tells the rule apart from others on its listener, and which rules that can be. */
  readonly kind: 'name' | 'key' | 'fallback' | 'path' | 'context' | 'alone';
  readonly values: readonly string[];
}

/** The listeners that the rules of a snapshot occupy. */
function* occupied(snapshot: NodeSnapshot): Generator<Occupied> {
  const of = (rule: {
    readonly rule_id: string;
    readonly origin: { readonly resource_id: string };
    readonly listen_addr: string;
    readonly listen_port: number;
  }) => ({
    rule: rule.rule_id,
    resource: rule.origin.resource_id,
    addr: rule.listen_addr,
    port: rule.listen_port,
  });
  for (const rule of snapshot.tcp_proxy_rules) {
    const kind = rule.server_names.length > 0 ? 'name' : 'fallback';
    yield { ...of(rule), transport: 'tcp', kind, values: rule.server_names };
  }
  for (const rule of snapshot.http_proxy_rules) {
    yield { ...of(rule), transport: 'tcp', kind: 'path', values: [JSON.stringify([rule.host, rule.path_prefix])] };
  }
  for (const rule of snapshot.quic_rules) {
    yield { ...of(rule), transport: 'udp', kind: 'name', values: rule.reality.server_names };
  }
  for (const rule of snapshot.udp_rules) {
    if (rule.transport_profile.outer === 'FAKE_TCP') yield { ...of(rule), transport: 'tcp', kind: 'alone', values: [] };
    else if (rule.noise_public_key === null) yield { ...of(rule), transport: 'udp', kind: 'fallback', values: [] };
    else yield { ...of(rule), transport: 'udp', kind: 'key', values: [rule.noise_public_key] };
  }
  for (const rule of snapshot.l3_rules.filter(({ role }) => role === 'LISTENER')) {
    const { host = '', port = '' } = splitHostPort(rule.local_endpoint) ?? {};
    const listen = { rule_id: rule.rule_id, origin: rule.origin, listen_addr: host, listen_port: Number(port) };
    yield { ...of(listen), transport: 'udp', kind: 'context', values: [String(rule.datagram_context_id)] };
  }
  const { multiplex, multiplex_port: port } = snapshot.node;
  const settings = { rule: 'multiplex', resource: 'connectivity', transport: 'tcp', addr: '::', port } as const;
  if (multiplex) yield { ...settings, kind: 'alone', values: [] };
}

function overlap(a: Occupied, b: Occupied): boolean {
  if (a.transport !== b.transport || a.port !== b.port || a.resource === b.resource) return false;
  const wide = (one: string, other: string): boolean => one === '::' || (one === '0.0.0.0' && !other.includes(':'));
  if (a.addr !== b.addr) return wide(a.addr, b.addr) || wide(b.addr, a.addr);
  if (a.kind === 'alone' || b.kind === 'alone') return true;
  const kinds = new Set([a.kind, b.kind]);
  if (kinds.has('fallback')) return kinds.size === 1 || kinds.has('path');
  return a.kind === b.kind && a.values.some((value) => b.values.includes(value));
}

function* pairs<T>(list: readonly T[]): Generator<readonly [T, T]> {
  for (const [index, a] of list.entries()) for (const b of list.slice(index + 1)) yield [a, b];
}

describe('in a random fleet of 200 nodes and 500 resources', () => {
  it('no two claims of different resources collide', () => {
    expect(fleet.tables.node.size).toBe(nodeCount);
    expect(resources()).toBeGreaterThanOrEqual(resourceCount);
    expect([...collidingPairs(worldOf(fleet))]).toEqual([]);
    expect(collisions, 'too few collisions were refused to prove anything').toBeGreaterThan(50);
  });

  it('no two rules of a snapshot occupy the same listener in the same way', () => {
    const kinds = new Map<string, number>();
    let shared = 0;
    for (const id of fleet.tables.node.ids()) {
      const listeners = [...occupied(compileNode(fleet, id))];
      for (const { transport, kind } of listeners) {
        kinds.set(`${transport} ${kind}`, (kinds.get(`${transport} ${kind}`) ?? 0) + 1);
      }
      for (const [a, b] of pairs(listeners)) {
        expect(overlap(a, b), `${a.rule} and ${b.rule}`).toBe(false);
        if (a.transport === b.transport && a.port === b.port && a.addr === b.addr) shared += 1;
      }
    }
    const all = ['tcp alone', 'tcp fallback', 'tcp name', 'tcp path', 'udp fallback', 'udp key', 'udp name'];
    expect([...kinds.keys()]).toEqual(expect.arrayContaining(all));
    expect(shared, 'too few listeners are shared to prove anything').toBeGreaterThan(10);
  });
});

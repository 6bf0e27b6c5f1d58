/** Collisions agree with an oracle that compares every listener with every other one, and are symmetric. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Hop } from '../../src/domain/chain/chain.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { collidingPairs, withKeptContexts, worldOf, type World } from '../support/collision-oracle.js';
import * as f from '../support/fleet.js';
import { histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';

/** The resources if a partial update of one were accepted. */
function edited<T extends { readonly id: string }>(
  all: readonly T[],
  command: { readonly id: string; readonly [field: string]: unknown },
): readonly T[] {
  const given = Object.fromEntries(Object.entries(command).filter(([, value]) => value !== undefined));
  return all.map((one) => (one.id === command.id ? { ...one, ...given } : one));
}

/** The world if the command were accepted; undefined for commands that add no listeners. */
function worldAfter(fleet: Fleet, command: FleetCommand): World | undefined {
  const world = worldOf(fleet);
  switch (command.type) {
    case 'CreateChain':
      return { ...world, chains: [...world.chains, { ...command, deployed: null }] };
    case 'RestoreChain':
      return { ...world, chains: [...world.chains, command] };
    case 'RollBackChain':
      return { ...world, chains: edited(world.chains, { id: command.id, deployed: command.definition }) };
    case 'UpdateChain':
      return { ...world, chains: edited(world.chains, command) };
    case 'CreateRoute':
    case 'RestoreRoute':
      return { ...world, routes: [...world.routes, command] };
    case 'UpdateRoute':
      return { ...world, routes: edited(world.routes, command) };
    case 'CreateL3Network':
    case 'RestoreL3Network':
      return { ...world, networks: [...world.networks, command] };
    case 'UpdateL3Network': {
      const { tunnels } = command;
      const before = world.networks.find(({ id }) => id === command.id)?.tunnels ?? [];
      const kept = { ...command, tunnels: tunnels === undefined ? undefined : withKeptContexts(before, tunnels) };
      return { ...world, networks: edited(world.networks, kept) };
    }
    case 'UpdateCredential':
      return { ...world, credentials: edited(world.credentials, command) };
    case 'UpdateConnectivity': {
      const { settings } = world;
      const nodes = { ...settings.nodes };
      for (const { node_id, multiplex, multiplex_port } of command.nodes ?? []) {
        if (multiplex === null) delete nodes[node_id];
        else nodes[node_id] = { multiplex, multiplex_port: multiplex_port ?? null };
      }
      const multiplex_port = command.multiplex_port === undefined ? settings.multiplex_port : command.multiplex_port;
      return { ...world, settings: { multiplex: command.multiplex ?? settings.multiplex, multiplex_port, nodes } };
    }
    default:
      return undefined;
  }
}

const isCollision = (message: string): boolean => message.includes('collides with');
const ids = /[0-9a-f]{8}-[0-9a-f-]{27}/g;

describe('in a random history', () => {
  it('a command is refused for a collision exactly when the oracle finds one, and names a resource of such a pair', () => {
    let collisions = 0;
    fc.assert(
      fc.property(histories(80), (moves) => {
        let expected: ReadonlySet<string> | undefined;
        play(moves, {
          before(fleet, command) {
            const world = worldAfter(fleet, command);
            expected = world === undefined ? undefined : collidingPairs(world);
          },
          after(fleet, { command, performed }) {
            expect([...collidingPairs(worldOf(fleet))], 'an accepted state has no collisions').toEqual([]);
            const refused = performed.kind === 'refused' ? performed.refusal : undefined;
            if (refused === undefined) {
              expect([...(expected ?? [])], `${command.type} was accepted`).toEqual([]);
            } else if (isCollision(refused.message)) {
              collisions += 1;
              expect(refused.code).toBe('conflict');
              const idsInMessage = refused.message.match(ids) ?? [];
              const other = idsInMessage.at(-1) ?? 'connectivity/';
              expect([...(expected ?? [])].join(', '), refused.message).toContain(other);
            }
          },
        });
      }),
      { numRuns: 80 },
    );
    expect(collisions, 'too few collisions in these histories to prove anything').toBeGreaterThan(10);
  });
});

const listener = fc.record({
  listen_addr: fc.constantFrom('0.0.0.0', '::', '10.0.0.1', '10.0.0.2', 'fd00::1', 'fd00::2'),
  listen_port: fc.constantFrom(80, 81),
  names: fc.subarray(['a.example', 'b.example', '*.example']),
  outer: fc.constantFrom('tcp', 'tcp', 'tcp', 'udp', 'fake_tcp'),
});
type Listener = typeof listener extends fc.Arbitrary<infer T> ? T : never;

const hopOf = ({ listen_addr, listen_port, names, outer }: Listener): Hop =>
  f.hop('n', listen_port, {
    listen_addr,
    outer: outer as Hop['outer'],
    ...(outer === 'tcp' && names.length > 0 ? { server_names: names } : {}),
  });

/** A chain of one hop, deployed with one listener and perhaps then edited to another. */
const oneHop = fc.record({ first: listener, edited: fc.option(listener) });
type OneHop = typeof oneHop extends fc.Arbitrary<infer T> ? T : never;

/** Deploys and edits a chain and disables it. @returns the command that enables it */
function prepared(fleet: Fleet, name: string, { first, edited }: OneHop): FleetCommand {
  f.performAll(fleet, [
    f.createChain(name, [hopOf(first)]),
    f.deployChain(name),
    f.updateChain(name, { enabled: false }),
  ]);
  if (edited !== null) {
    const payload = edited.outer === 'tcp' ? 'tcp' : 'udp';
    f.perform(fleet, f.updateChain(name, { payload, hops: [hopOf(edited)] }));
  }
  return f.updateChain(name, { enabled: true });
}

/** Whether the second of two commands is refused because of the first. */
function collideInOrder(first: 'x' | 'y', x: OneHop, y: OneHop): boolean {
  const { fleet } = f.given(f.createNode('n'));
  const enable = { x: prepared(fleet, 'x', x), y: prepared(fleet, 'y', y) };
  const second = first === 'x' ? 'y' : 'x';
  f.performAll(fleet, [enable[first]]);
  const performed = f.perform(fleet, enable[second]);
  if (performed.kind !== 'refused') return false;
  expect(performed.refusal.message).toContain(`l4_chain "${first}" (${f.chainId(first)})`);
  return true;
}

describe('a collision does not depend on the order', () => {
  it('of two chains, for current and deployed listeners', () => {
    let collisions = 0;
    fc.assert(
      fc.property(oneHop, oneHop, (x, y) => {
        const oneWay = collideInOrder('x', x, y);
        if (oneWay) collisions += 1;
        expect(collideInOrder('y', x, y)).toBe(oneWay);
      }),
      { numRuns: 100 },
    );
    expect(collisions).toBeGreaterThan(15);
    expect(collisions).toBeLessThan(180);
  });

  it('of a chain and a multiplex port, global or overridden', () => {
    const override = fc.option(fc.record({ multiplex: fc.boolean(), multiplex_port: fc.constantFrom(null, 80, 81) }));
    const ports = fc.record({ multiplex: fc.boolean(), multiplex_port: fc.constantFrom(80, 82), override });
    fc.assert(
      fc.property(oneHop, ports, (x, { multiplex, multiplex_port, override: ofNode }) => {
        const nodes = ofNode === null ? [] : [{ node_id: f.nodeId('n'), ...ofNode }];
        const multiplexing = f.settings({ multiplex, multiplex_port, nodes });
        const order = (first: 'chain' | 'settings'): string => {
          const { fleet } = f.given(f.createNode('n'));
          const enable = prepared(fleet, 'x', x);
          const commands = first === 'chain' ? [enable, multiplexing] : [multiplexing, enable];
          const [one, two] = commands.map((command) => f.perform(fleet, command));
          expect(one?.kind).toBe('written');
          return two?.kind === 'refused' ? 'collides' : 'does not collide';
        };
        expect(order('chain')).toBe(order('settings'));
      }),
      { numRuns: 80 },
    );
  });
});

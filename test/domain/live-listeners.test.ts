/** The listeners that nodes have with their newest snapshot (`docs/contract/rest.md#dashboard`, intended). */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { listenerKey, liveListeners } from '../../src/domain/port-table/port-table.js';
import * as f from '../support/fleet.js';
import { histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';

const live = (fleet: Fleet, node: string) => [...liveListeners(fleet, f.nodeId(node))].sort();

it('are those of deployed definitions of enabled resources, each once', () => {
  const edited = f.createChain('one', [f.hop('a', 90)]);
  const { fleet } = f.given(
    f.createNode('a'),
    f.createNode('b'),
    f.createChain('one', [f.hop('a', 80, { server_names: ['x.example'] }), f.hop('b', 81)]),
    f.createChain('two', [f.hop('a', 80, { server_names: ['y.example'] })]),
    f.createChain('draft', [f.hop('a', 82)]),
    f.deployChain('one'),
    f.deployChain('two'),
    { type: 'UpdateChain', id: edited.id, ifMatch: undefined, hops: edited.hops },
  );
  expect(live(fleet, 'a')).toEqual(['tcp/80/0.0.0.0']);
  expect(live(fleet, 'b')).toEqual(['tcp/81/0.0.0.0']);
  f.performAll(fleet, [{ type: 'UpdateChain', id: f.chainId('one'), ifMatch: undefined, enabled: false }]);
  expect([live(fleet, 'a'), live(fleet, 'b')]).toEqual([['tcp/80/0.0.0.0'], []]);
  expect(live(fleet, 'nobody')).toEqual([]);
});

it('are named by their address, not by its notation', () => {
  const { fleet } = f.given(
    f.createNode('a'),
    f.createChain('one', [f.hop('a', 80, { listen_addr: '10.0.0.1' })]),
    f.deployChain('one'),
  );
  const reported = { transport: 'tcp', listenAddr: '::FFFF:a00:1', listenPort: 80 } as const;
  expect(live(fleet, 'a')).toEqual([listenerKey(reported)]);
});

it('hold every listener that a rule of the compiled snapshot has', () => {
  fc.assert(
    fc.property(histories(), (moves) => {
      const { fleet } = play(moves);
      for (const id of fleet.tables.node.ids()) {
        const { tcp_proxy_rules, http_proxy_rules, udp_rules, quic_rules } = compileNode(fleet, id);
        const compiled = [
          ...[...tcp_proxy_rules, ...http_proxy_rules].map((rule) => ({ rule, transport: 'tcp' as const })),
          ...[...udp_rules, ...quic_rules].map((rule) => ({
            rule,
            // It looks like TCP from outside.
            transport: rule.transport_profile.outer === 'FAKE_TCP' ? ('tcp' as const) : ('udp' as const),
          })),
        ].map(({ rule: { listen_addr: listenAddr, listen_port: listenPort }, transport }) =>
          listenerKey({ transport, listenAddr, listenPort }),
        );
        expect([...liveListeners(fleet, id)]).toEqual(expect.arrayContaining(compiled));
      }
    }),
    { numRuns: 40 },
  );
});

it('change only with the generation of the node, by which they are remembered', () => {
  fc.assert(
    fc.property(histories(), (moves) => {
      const before = new Map<string, { readonly generation: number | undefined; readonly keys: readonly string[] }>();
      play(moves, {
        after(fleet) {
          for (const id of fleet.tables.node.ids()) {
            const now = { generation: fleet.generationOf(id), keys: [...liveListeners(fleet, id)].sort() };
            const then = before.get(id);
            if (then?.generation === now.generation) expect(now.keys).toEqual(then?.keys);
            before.set(id, now);
          }
        },
      });
    }),
    { numRuns: 40 },
  );
});

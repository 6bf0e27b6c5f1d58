/** `docs/contract/domain.md#health-of-a-chain`: which state each report makes, and which of them counts. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DeployedDefinition } from '../../src/domain/chain/chain.js';
import type { HopReport } from '../../src/domain/chain/health.js';
import { chainHealth, healthStates } from '../../src/domain/chain/health.js';

const deployed: DeployedDefinition = {
  payload: 'tcp',
  hops: [],
  target: { endpoint: 'a.example:80' },
  chain_version: 1,
  at: '2026-01-01T00:00:00.000Z',
  deployment_id: 'd',
};
const live = { enabled: true, deployed };
const well: HopReport = {
  nodeName: 'edge',
  status: 'online',
  listener: 'tcp 0.0.0.0:443',
  state: 'running',
  apply: 'applied',
  loss: null,
};
const last: HopReport = { ...well, nodeName: 'relay' };
const of = (...hops: readonly Partial<HopReport>[]) =>
  chainHealth(
    live,
    hops.map((hop) => ({ ...well, ...hop })),
    undefined,
  );

describe('the health of a chain', () => {
  it.each([
    [{}, 'ok', undefined],
    [{ status: 'offline', state: null }, 'down', 'node "edge" is offline'],
    [{ status: 'offline', apply: 'behind' }, 'down', 'node "edge" is offline'],
    [{ status: 'pending', state: null, apply: 'behind' }, 'unknown', 'the agent of node "edge" has never connected'],
    [{ state: 'failed' }, 'down', 'listener tcp 0.0.0.0:443 of node "edge" is failed'],
    [{ state: 'missing' }, 'down', 'listener tcp 0.0.0.0:443 of node "edge" is missing'],
    [{ state: null }, 'unknown', 'no heartbeat of node "edge" tells of tcp 0.0.0.0:443 yet'],
    [{ state: null, apply: 'behind' }, 'unknown', 'no heartbeat of node "edge" tells of tcp 0.0.0.0:443 yet'],
    [{ state: null, apply: 'rejected' }, 'degraded', 'node "edge" has rejected its newest configuration'],
    [{ apply: 'rejected' }, 'degraded', 'node "edge" has rejected its newest configuration'],
    [{ apply: 'behind' }, 'degraded', 'node "edge" has not applied its newest configuration yet'],
    [{ loss: 0.2 }, 'ok', undefined],
    [{ loss: 0.21 }, 'degraded', 'the link from "edge" to "relay" loses 21 %'],
  ] as const)('with a hop that is %j is %s', (hop, state, reason) => {
    const health = of(hop, last);
    expect([health.state, health.reasons[0]]).toEqual([state, reason]);
  });

  it('is that of its worst hop, with the reasons of all, the worst first', () => {
    expect(
      of({ state: null }, { ...last, apply: 'rejected' }, { ...last, nodeName: 'exit', status: 'offline' }),
    ).toEqual({
      state: 'down',
      reasons: [
        'node "exit" is offline',
        'node "relay" has rejected its newest configuration',
        'no heartbeat of node "edge" tells of tcp 0.0.0.0:443 yet',
      ],
    });
    const hop = fc.record({
      status: fc.constantFrom('pending', 'online', 'offline'),
      state: fc.constantFrom('running', 'failed', null),
      apply: fc.constantFrom('applied', 'rejected', 'behind'),
    }) as fc.Arbitrary<Partial<HopReport>>;
    const order = ['ok', 'unknown', 'degraded', 'down'];
    expect(order.toSorted()).toEqual(healthStates.toSorted());
    fc.assert(
      fc.property(fc.array(hop, { minLength: 1, maxLength: 8 }), (hops) => {
        const worst = Math.max(...hops.map((one) => order.indexOf(of(one).state)));
        expect(of(...hops).state).toBe(order[worst]);
      }),
    );
  });

  const web = { name: 'web', enabled: true, unhealthy: false };

  it('is down while its upstream is disabled', () => {
    expect(chainHealth(live, [well], web).state).toBe('ok');
    expect(chainHealth(live, [well], { ...web, enabled: false })).toEqual({
      state: 'down',
      reasons: ['upstream "web" is disabled'],
    });
  });

  it('is down while the node that dials the upstream reports it unhealthy', () => {
    expect(chainHealth(live, [well], { ...web, unhealthy: true })).toEqual({
      state: 'down',
      reasons: [`upstream "web" is unhealthy, as "${well.nodeName}" reports`],
    });
  });

  it('is unknown of a chain that nodes do not run', () => {
    const draft = chainHealth({ enabled: true, deployed: null }, [], undefined);
    expect(draft).toEqual({ state: 'unknown', reasons: ['the chain was never deployed'] });
    const disabled = chainHealth({ ...live, enabled: false }, [], { ...web, enabled: false });
    expect(disabled).toEqual({ state: 'unknown', reasons: ['the chain is disabled'] });
  });
});

/** `docs/contract/domain.md#health-of-a-chain`: which state each report makes, and which of them counts. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  chainFaults,
  healthOfFaults,
  healthStates,
  healthWithoutDeploy,
  mainCause,
  type DeployedUpstream,
  type HopReport,
} from '../../src/domain/chain/health.js';

const at = '2026-01-01T00:00:00.000Z';
const well: HopReport = {
  node: { id: 'n1', name: 'edge' },
  status: 'online',
  listener: 'tcp 0.0.0.0:443',
  state: 'running',
  route: null,
  since: at,
  apply: 'applied',
  loss: null,
};
const last: HopReport = { ...well, node: { id: 'n2', name: 'relay' } };
const faultsOf = (hops: readonly Partial<HopReport>[], upstream?: DeployedUpstream) =>
  chainFaults(
    hops.map((hop) => ({ ...well, ...hop })),
    upstream,
  );
const of = (...hops: readonly Partial<HopReport>[]) => healthOfFaults(faultsOf(hops));

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
    [{ loss: 0.999 }, 'degraded', 'the link from "edge" to "relay" loses 99 %'],
    [{ loss: 1 }, 'down', 'the link from "edge" to "relay" loses 100 %'],
    [
      { route: 'target_unreachable' },
      'down',
      'node "edge" cannot reach the REALITY target of tcp 0.0.0.0:443 (target_unreachable)',
    ],
    [
      { route: 'target_unusable' },
      'down',
      'node "edge" cannot imitate the REALITY target of tcp 0.0.0.0:443 (target_unusable)',
    ],
    [{ route: 'odd' }, 'down', 'the route of the chain on listener tcp 0.0.0.0:443 of node "edge" is odd'],
    [{ state: 'failed', route: 'target_unusable' }, 'down', 'listener tcp 0.0.0.0:443 of node "edge" is failed'],
  ] as const)('with a hop that is %j is %s', (hop, state, reason) => {
    const health = of(hop, last);
    expect([health.state, health.reasons[0]]).toEqual([state, reason]);
  });

  it('is that of its worst hop, with the reasons of all, the worst first', () => {
    expect(
      of(
        { state: null },
        { ...last, apply: 'rejected' },
        { ...last, node: { id: 'n3', name: 'exit' }, status: 'offline' },
      ),
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

  const web: DeployedUpstream = { id: 'u1', name: 'web', enabled: true, seen: 'healthy', since: at };
  const ending = (upstream: Partial<DeployedUpstream>, hop: Partial<HopReport> = {}) =>
    healthOfFaults(faultsOf([hop], { ...web, ...upstream }));

  it('is that of its upstream, as the node that dials it sees it', () => {
    expect(ending({}).state).toBe('ok');
    expect(ending({ seen: 'unnamed' }).state).toBe('ok');
    expect(ending({ enabled: false })).toEqual({ state: 'down', reasons: ['upstream "web" is disabled'] });
    expect(ending({ seen: 'unhealthy' })).toEqual({
      state: 'down',
      reasons: ['upstream "web" is unhealthy, as "edge" reports'],
    });
    expect(ending({ seen: 'awaited' })).toEqual({
      state: 'unknown',
      reasons: ['node "edge" has not told of upstream "web" yet'],
    });
    // What an agent that is away said last says nothing about now.
    expect(ending({ seen: 'unhealthy' }, { status: 'offline' }).reasons).toEqual(['node "edge" is offline']);
  });

  it('has as its cause the first that holds, whatever is worse', () => {
    const causeOf = (hops: readonly Partial<HopReport>[], upstream?: DeployedUpstream) =>
      mainCause(faultsOf(hops, upstream));
    const node = { type: 'node', resource: well.node };
    const failed = { state: 'failed' } as const;
    expect(causeOf([{}])).toBeNull();
    expect(causeOf([{ state: null }])).toBeNull();
    expect(causeOf([failed])).toEqual({ ...node, kind: 'listener_missing', detail: 'tcp 0.0.0.0:443' });
    expect(causeOf([{ ...failed, apply: 'rejected' }])).toEqual({ ...node, kind: 'node_rejected' });
    expect(causeOf([{ ...failed, apply: 'behind' }])?.kind).toBe('listener_missing');
    expect(causeOf([failed, { status: 'offline' }])?.kind).toBe('node_offline');
    expect(causeOf([{ route: 'target_unusable', loss: 1 }, last])?.kind).toBe('target_unusable');
    expect(causeOf([{ loss: 1 }, last], { ...web, enabled: false })).toEqual({
      type: 'l4_upstream',
      kind: 'upstream_disabled',
      resource: { id: 'u1', name: 'web' },
    });
    expect(causeOf([{ loss: 1, apply: 'behind' }, last])).toEqual({ ...node, kind: 'link_loss', detail: 'relay' });
    expect(causeOf([{ apply: 'behind' }])).toEqual({ ...node, kind: 'apply_behind' });
  });

  it('is unknown of a chain that nodes do not run', () => {
    expect(healthWithoutDeploy({ enabled: true }).reasons).toEqual(['the chain was never deployed']);
    expect(healthWithoutDeploy({ enabled: false })).toEqual({ state: 'unknown', reasons: ['the chain is disabled'] });
  });
});

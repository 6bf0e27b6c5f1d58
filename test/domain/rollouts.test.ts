/**
 * Rollouts: which nodes change together and in which wave, by examples and at random, and the states that steps lead to. What a
 * hold does is in `test/delivery`.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeCommand } from '../../src/domain/audit/describe.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { captureFleet, encodeFleet, restoreFleet } from '../../src/domain/fleet/checkpoint.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { draftAfter } from '../../src/domain/fleet/hypothetical.js';
import type { FleetCommand, FleetEvent } from '../../src/domain/fleet/resources.js';
import { subjectsOf } from '../../src/domain/revert/decide.js';
import type { History } from '../../src/domain/revert/history.js';
import { ranMs } from '../../src/kernel/run-clock.js';
import { placesIn, nodeSet } from '../../src/domain/rollout/node-set.js';
import {
  excuses,
  hasEnded,
  nodesIn,
  packIds,
  rolloutStates,
  unpackIds,
  type RolloutCommand,
} from '../../src/domain/rollout/rollout.js';
import type { WaveRule } from '../../src/domain/rollout-policy/rollout-policy.js';
import { limits } from '../../src/kernel/limits.js';
import { dealer } from '../support/dealer.js';
import * as f from '../support/fleet.js';
import { dumpFleet } from '../support/fleet-dump.js';
import { commandOf, histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';
import {
  createRolloutPolicy,
  heldByStates,
  heldNodes,
  nothingSeen,
  roll,
  rolloutId,
  rolloutOf,
  rolloutPolicyId,
} from '../support/rollouts.js';

const named = (fleet: Fleet, plan: ReturnType<typeof roll>['plan']): unknown =>
  plan?.waves.map(({ units }) => units.map((unit) => unit.map((id) => fleet.nameOf('node', id)).join('+')).join(' '));

const settingsNaming = (name: string | null): FleetCommand =>
  f.settings({ rollout_policy: name === null ? null : rolloutPolicyId(name) });

/** Two chains of two hops each, and a fifth node with settings of its own. */
function site(waves: readonly WaveRule[] = [{ nodes: 1 }]): Fleet {
  const { fleet } = f.given(
    ...['edge-10', 'edge-2', 'edge-1', 'relay', 'alone'].map((name) =>
      f.createNode(name, { labels: name === 'relay' ? { canary: 'yes' } : {} }),
    ),
    createRolloutPolicy('p', { waves }),
    f.createUpstream('up'),
    ...[['one', 'edge-10', 'edge-2'] as const, ['two', 'edge-1', 'relay'] as const].flatMap(([name, first, last]) => [
      f.createChain(name, [f.hop(first, 80), f.hop(last, 81)], { target: { upstream_id: f.upstreamId('up') } }),
      f.deployChain(name),
    ]),
  );
  return fleet;
}

const everyNode = f.settings({ multiplex: true, multiplex_port: 7443 });

describe('the units and waves of a command', () => {
  it.each<[string, readonly WaveRule[], readonly string[]]>([
    ['the first by number', [{ nodes: 2 }], ['alone edge-1', 'edge-2 edge-10 relay']],
    ['a share, rounded up', [{ nodes: '21%' }, { nodes: '1%' }], ['alone edge-1', 'edge-2', 'edge-10 relay']],
    ['labels first', [{ labels: { canary: 'yes' } }, { nodes: 1 }], ['relay', 'alone', 'edge-1 edge-2 edge-10']],
    [
      'no empty wave',
      [{ labels: { no: 'one' } }, { nodes: '100%' }, { nodes: 4 }],
      ['alone edge-1 edge-2 edge-10 relay'],
    ],
  ])('%s', (_what, waves, expected) => {
    const fleet = site(waves);
    expect(named(fleet, roll(fleet, everyNode, 'P').plan)).toEqual(expected);
  });

  it('nodes that dial one another by a changed rule stay together, others do not', () => {
    const fleet = site();
    // Only the last hops lead to the upstream, and nobody dials by what changes.
    const { plan } = roll(fleet, f.updateUpstream('up', { endpoint: 'other.example:1' }), 'p', { isTry: true });
    expect(named(fleet, plan)).toEqual(['edge-2', 'relay']);
    const renamed = roll(fleet, f.updateChain('one', { name: 'first' }), 'p', { isTry: true });
    expect(renamed).toMatchObject({ plan: { rolloutId: null, warnings: ['one unit of 2 nodes, no waves'] } });
    expect(named(fleet, renamed.plan)).toEqual(['edge-2+edge-10']);
    // A chain that moves joins those whom it leaves.
    f.performAll(fleet, [f.updateChain('one', { hops: [f.hop('edge-10', 80), f.hop('alone', 81)] })]);
    expect(named(fleet, roll(fleet, f.deployChain('one'), 'p', { isTry: true }).plan)).toEqual([
      'alone+edge-2+edge-10',
    ]);
  });

  it('ids and sets survive packing', () => {
    const ids = Array.from({ length: 20 }, (_, index) => f.nodeId(String(index)));
    expect(unpackIds(packIds(ids))).toEqual(ids);
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(300)), fc.uniqueArray(fc.nat(300)), (a, b) => {
        const both = [...new Set([...a, ...b])].sort((x, y) => x - y);
        expect(placesIn(nodeSet(b, nodeSet(a)))).toEqual(both);
      }),
    );
  });

  it('at random, every touched node is in one unit and one wave, no changed hop is split, and two runs agree', () => {
    const share = fc.oneof(
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 100 }).map((p) => `${p}%`),
    );
    const rule = fc.oneof(
      fc.record({ nodes: share }),
      fc.constantFrom('x', 'y').map((site) => ({ labels: { site } })),
    );
    const waves = fc.array(rule, { minLength: 1, maxLength: 4 });
    const move = fc.record({
      kind: fc.constantFrom(
        ...(['deployChain', 'renameChain', 'updateNode', 'updateUpstream', 'editRoute', 'editNetwork'] as const),
        ...([
          'editCredential',
          'settings',
          'settings',
          'settings',
          'deleteChain',
          'switchChain',
          'deleteNode',
          'createNode',
        ] as const),
      ),
      seed: fc.nat(0x7fff_ffff),
    });
    let started = 0;
    fc.assert(
      fc.property(histories(60), waves, fc.array(move, { minLength: 4, maxLength: 8 }), (moves, rules, next) => {
        const { fleet } = play(moves);
        f.performAll(fleet, [createRolloutPolicy('policy', { waves: rules })]);
        for (const [index, one] of next.entries()) {
          const command = commandOf(fleet, one, 1_000 + index);
          if (command === undefined) continue;
          const before = dumpFleet(fleet);
          const first = roll(fleet, command, 'policy', { isTry: true });
          expect(roll(fleet, command, 'policy', { isTry: true })).toEqual(first);
          expect(dumpFleet(fleet)).toBe(before);
          if (!first.decision.ok || first.decision.value.length === 0) continue;
          const own = first.decision.value.filter(({ type }) => type !== 'RolloutStarted');
          const units = first.plan?.waves.flatMap((wave) => wave.units) ?? [];
          expectSound(fleet, own, units);
          const isRollout = own.length < first.decision.value.length;
          expect(isRollout).toBe(units.length > 1);
          expect(first.plan?.rolloutId !== null).toBe(isRollout);
          if (!isRollout) continue;
          started += 1;
          roll(fleet, command, 'policy', { id: `at ${index}` });
          expect(heldNodes(fleet)).toEqual(heldByStates(fleet));
          const rollout = rolloutOf(fleet, `at ${index}`);
          expect([...nodesIn(rollout)].map(({ nodeId }) => nodeId)).toEqual(units.flat());
          f.append(fleet, ...endOf(fleet, rollout.id));
          expect(heldNodes(fleet).size).toBe(0);
        }
      }),
      { numRuns: 80 },
    );
    expect(started).toBeGreaterThan(5);
  });
});

function endOf(fleet: Fleet, id: string): readonly FleetEvent[] {
  const { decision } = roll(fleet, { type: 'CompleteRollout', id }, undefined, { isTry: true });
  return decision.ok ? decision.value : [];
}

/** Compares units with what the command touches, and with the hops of chains and routes that it changes. */
function expectSound(fleet: Fleet, events: readonly FleetEvent[], units: readonly (readonly string[])[]): void {
  const after = draftAfter(fleet, events);
  const touched = new Set(
    [...fleet.tables.node.ids(), ...after.tables.node.ids()].filter(
      (id) => after.touchedAt(id) !== fleet.touchedAt(id) && after.tables.node.has(id),
    ),
  );
  expect(units.flat().toSorted()).toEqual([...touched].sort());
  for (const unit of units) expect(unit.length).toBeGreaterThan(0);
  const unitOf = new Map(units.flatMap((unit, index) => unit.map((id) => [id, index] as const)));
  for (const one of [fleet, after]) {
    const chains = [...one.tables.l4_chain.values()].map(({ id, enabled, deployed }) => ({
      id,
      enabled,
      hops: deployed?.hops,
    }));
    for (const { id, enabled, hops = [] } of [...chains, ...one.tables.route.values()]) {
      for (const [index, hop] of hops.entries()) {
        const next = hops[index + 1];
        if (!enabled || next === undefined || !touched.has(hop.node_id) || !touched.has(next.node_id)) continue;
        const rules = [fleet, after].map((at) => ruleText(at, hop.node_id, `${id}/${index}`));
        if (rules[0] !== rules[1]) expect(unitOf.get(hop.node_id)).toBe(unitOf.get(next.node_id));
      }
    }
  }
}

function ruleText(fleet: Fleet, nodeId: string, ruleId: string): string {
  const { tcp_proxy_rules, udp_rules, quic_rules, http_proxy_rules } = compileNode(fleet, nodeId);
  const all = [...tcp_proxy_rules, ...udp_rules, ...quic_rules, ...http_proxy_rules];
  return JSON.stringify(all.find(({ rule_id }) => rule_id === ruleId) ?? null);
}

const expectRefused = ({ decision }: ReturnType<typeof roll>, code: string, ...parts: readonly string[]): void => {
  expect(decision.ok ? 'accepted' : decision.error.code).toBe(code);
  for (const part of parts) expect(decision.ok ? '' : decision.error.message).toContain(part);
};

describe('a command with a rollout', () => {
  it('starts one in its own append, whose entry stays its own', () => {
    const fleet = site();
    const { written, plan } = roll(fleet, everyNode, 'p', {
      observe: { isOnline: () => true, failing: (id) => (id === f.nodeId('alone') ? ['tcp 0.0.0.0 80'] : []) },
    });
    expect(written?.events.map(({ type }) => type)).toEqual(['ConnectivityUpdated', 'RolloutStarted']);
    const entry = written && describeCommand(written);
    expect(entry).toMatchObject({
      action: 'connectivity.update',
      notRevertibleBecause: null,
      resource: { id: 'connectivity' },
    });
    expect(entry?.changes.map(({ path }) => path)).toEqual(['multiplex', 'multiplex_port']);
    expect(plan).toMatchObject({ rolloutId: rolloutId('one'), warnings: [] });
    const rollout = rolloutOf(fleet);
    expect(rollout).toMatchObject({
      entry_id: written?.events[0].metadata.command.id,
      action: 'connectivity.update',
      resource: { type: 'connectivity', id: 'connectivity', name: 'connectivity' },
      policy: { id: rolloutPolicyId('p'), name: 'p', bake_secs: 60 },
      state: 'running',
      wave: 1,
      waves: [
        { nodes: 1, converged_at: null, online: nodeSet([0]) },
        { nodes: 4, released_at: null },
      ],
      revision: fleet.revision.value,
    });
    expect(rollout.waves[0]?.released_at).toBe(rollout.created_at);
    const excused = excuses(rollout.waves[0] ?? { failing: [] });
    expect([excused(0, 'tcp 0.0.0.0 80'), excused(0, 'tcp 0.0.0.0 81')]).toEqual([true, false]);
    expect([...heldNodes(fleet).keys()].sort()).toEqual(['edge-10', 'edge-2', 'edge-1', 'relay'].map(f.nodeId).sort());
    expect(fleet.heldBy(f.nodeId('alone'))).toBeUndefined();
    expect(fleet.rolloutOf(f.nodeId('alone'))).toEqual({ rolloutId: rolloutId('one'), wave: 1 });
  });

  it('excuses every listener of an agent that reports none', () => {
    const fleet = site();
    roll(fleet, everyNode, 'p', { observe: { isOnline: () => true, failing: () => undefined } });
    const excused = excuses(rolloutOf(fleet).waves[0] ?? { failing: [] });
    expect([excused(0, 'tcp 0.0.0.0 80'), excused(1, 'tcp 0.0.0.0 80')]).toEqual([true, false]);
  });

  it('by what the settings say, unless it says something else', () => {
    const fleet = site();
    expect(roll(fleet, everyNode, undefined, { isTry: true }).plan).toBeUndefined();
    expect(roll(fleet, everyNode, 'none', { isTry: true }).plan).toEqual({ rolloutId: null, waves: [], warnings: [] });
    expectRefused(roll(fleet, everyNode, 'other'), 'invalid_request', 'rollout:', '"other"');
    f.performAll(fleet, [settingsNaming('p')]);
    expect(roll(fleet, everyNode, undefined, { isTry: true }).plan?.waves).toHaveLength(2);
    expect(roll(fleet, everyNode, 'none', { isTry: true }).plan?.waves).toEqual([]);
    // What touches one node alone starts none.
    const one = f.settings({ nodes: [{ node_id: f.nodeId('alone'), multiplex: true, multiplex_port: 9 }] });
    expect(roll(fleet, one, undefined).plan).toMatchObject({ rolloutId: null, warnings: [] });
    // An older wish for a version that is no longer there comes first.
    expectRefused(roll(fleet, { ...f.deployChain('one', [99]) } as FleetCommand, 'other'), 'precondition_failed');
  });

  it('is refused while a node is in another one, passes with none, and a deleted node leaves', () => {
    const fleet = site();
    roll(fleet, everyNode, 'p');
    const single = f.settings({ nodes: [{ node_id: f.nodeId('relay'), multiplex: true, multiplex_port: 9 }] });
    expectRefused(roll(fleet, single, 'p'), 'conflict', rolloutId('one'), '"relay"');
    // edge-1 and relay are held alike; alone is not.
    expect(roll(fleet, f.updateChain('two', { name: 'second' }), 'none').plan?.warnings).toEqual([]);
    f.performAll(fleet, [f.updateChain('two', { hops: [f.hop('alone', 80), f.hop('relay', 81)] })]);
    const { plan } = roll(fleet, f.deployChain('two'), 'none');
    expect(plan?.warnings).toHaveLength(1);
    expect(plan?.warnings[0]).toContain('"alone" dials "relay"');
    const remove = [f.chainId('two'), f.chainId('one')].map(
      (id) => ({ type: 'DeleteChain', id, ifMatch: undefined }) as const,
    );
    f.performAll(fleet, [...remove, { type: 'DeleteNode', id: f.nodeId('relay'), ifMatch: undefined }]);
    expect(heldNodes(fleet)).toEqual(heldByStates(fleet));
    expect([...nodesIn(rolloutOf(fleet))].map(({ nodeId }) => nodeId)).not.toContain(f.nodeId('relay'));
    const copy = restoreFleet(Buffer.concat([...encodeFleet(captureFleet(fleet))]));
    expect(dumpFleet(copy)).toBe(dumpFleet(fleet));
  });

  it('of an upgrade has no entry, always halts, and leaves out nodes of others', () => {
    const fleet = site();
    f.performAll(fleet, [
      createRolloutPolicy('up', { on_failure: 'revert' }),
      f.settings({ upgrade_rollout_policy: rolloutPolicyId('up') }),
    ]);
    roll(fleet, f.updateUpstream('up', { endpoint: 'other.example:1' }), 'p');
    roll(fleet, { type: 'RaiseCompilerVersion', version: 9 }, undefined, { id: 'upgrade' });
    const upgrade = rolloutOf(fleet, 'upgrade');
    expect(upgrade).toMatchObject({ entry_id: null, action: 'service.update', policy: { on_failure: 'halt' } });
    expect(upgrade.nodes).toEqual(['alone', 'edge-1', 'edge-10'].map(f.nodeId));
  });

  it.each([false, true])('ends with the revert of its entry (by the name of the rollout: %s)', (ofRollout) => {
    const fleet = site();
    f.performAll(fleet, [settingsNaming('p')]);
    const { written } = roll(fleet, everyNode, 'p');
    if (written === undefined) throw new Error('nothing was written');
    const history: History = { version: fleet.singletons.connectivity.value.version, later: [], changedBy: new Map() };
    const histories = new Map(Array.from(subjectsOf(written).keys(), (owner) => [owner, history]));
    const revert = { type: 'Revert', entry: written, histories, ...(ofRollout ? { ofRollout } : {}) } as const;
    const reverted = roll(fleet, revert, undefined, { id: 'again', revertOf: written.events[0].metadata.command.id });
    expect(reverted.plan).toEqual({ rolloutId: null, waves: [], warnings: [] });
    const entry = reverted.written && describeCommand(reverted.written);
    expect(entry).toMatchObject({ action: 'connectivity.revert', notRevertibleBecause: null });
    expect(entry?.changes.map(({ path }) => path)).toEqual(['multiplex', 'multiplex_port']);
    expect(rolloutOf(fleet).state).toBe(ofRollout ? 'reverted' : 'cancelled');
    expect(heldNodes(fleet).size).toBe(0);
  });
});

const steps: readonly RolloutCommand['type'][] = [
  ...(['ConvergeWave', 'ReleaseWave', 'ConvergeWave', 'ReleaseWave', 'HaltRollout', 'BeginRolloutRevert'] as const),
  ...(['SetRolloutClock', 'PauseRollout', 'ResumeRollout', 'AdvanceRollout', 'CompleteRollout'] as const),
];

/** The states after each step, as `docs/contract/rollouts.md#running` has them. */
const allowed: { readonly [C in RolloutCommand['type']]: readonly string[] } = {
  ConvergeWave: ['running > baking'],
  ReleaseWave: ['baking > running', 'baking > completed'],
  HaltRollout: ['running > halted', 'baking > halted', 'reverting > halted'],
  BeginRolloutRevert: ['running > reverting', 'baking > reverting'],
  SetRolloutClock: ['running > running', 'baking > baking'],
  PauseRollout: ['running > paused', 'baking > paused'],
  ResumeRollout: ['paused > running', 'paused > baking', 'halted > running'],
  AdvanceRollout: ['baking > running', 'baking > completed'],
  CompleteRollout: ['running', 'baking', 'paused', 'halted', 'reverting'].map((state) => `${state} > completed`),
};

function stepOf(type: RolloutCommand['type'], fleet: Fleet, isStale: boolean): RolloutCommand {
  const { id, version, nodes } = rolloutOf(fleet);
  const judged = { version: isStale ? version - 1 : version, failed: nodes.slice(0, 1), lost: nodes.slice(1, 2) };
  return { type, id, ...judged, reason: 'a reason', observe: nothingSeen, ran_ms: 5_000, runs: true } as RolloutCommand;
}

describe('the steps of a rollout', () => {
  it('at random lead only to states of the contract, once, and hold exactly the nodes of later waves', () => {
    const one = fc.record({ type: fc.constantFrom(...steps), isStale: fc.boolean(), seed: fc.nat(9) });
    const seen = new Set<string>();
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 14 }), (all) => {
        const fleet = site([{ nodes: 1 }, { nodes: 1 }]);
        roll(fleet, everyNode, 'p');
        for (const { type, isStale, seed } of all) {
          if (dealer(seed).chance(10))
            f.append(fleet, { type: 'NodeDeleted', data: { node_id: f.nodeId('alone') } } as never);
          const before = rolloutOf(fleet);
          const performed = f.perform(fleet, stepOf(type, fleet, isStale));
          const after = rolloutOf(fleet);
          expect(heldNodes(fleet)).toEqual(heldByStates(fleet));
          expect(rolloutStates).toContain(after.state);
          expect(after.ended_at !== null).toBe(hasEnded(after));
          expect(after.clock.since !== null).toBe(after.state === 'running' || after.state === 'baking');
          expect(after.paused_from !== null).toBe(after.state === 'paused');
          expect(after.wave).toBeLessThanOrEqual(after.waves.length);
          expect(after.waves.map(({ released_at }) => released_at !== null)).toEqual(
            after.waves.map((_, index) => index < after.wave),
          );
          const isPerson = /^(Pause|Resume|Advance|Complete)/.test(type);
          const possible = allowed[type].some((change) => change.startsWith(before.state));
          if (!possible || (isStale && !isPerson)) {
            expect(performed.kind).toBe(isPerson ? 'refused' : 'unchanged');
            expect(after).toBe(before);
            continue;
          }
          expect(performed.kind).toBe('written');
          expect(allowed[type]).toContain(`${before.state} > ${after.state}`);
          seen.add(`${type}: ${before.state} > ${after.state}`);
        }
        const copy = restoreFleet(Buffer.concat([...encodeFleet(captureFleet(fleet))]));
        expect(dumpFleet(copy)).toBe(dumpFleet(fleet));
      }),
      { numRuns: 100 },
    );
    expect(seen.size).toBeGreaterThan(15);
  });

  it('keep the clock over a pause, and begin anew after a halt, with its failures forgotten', () => {
    const fleet = site();
    roll(fleet, everyNode, 'p');
    const at = (seconds: number) => ({ at: Date.parse(rolloutOf(fleet).created_at) + seconds * 1000 });
    const step = (type: RolloutCommand['type'], seconds: number) =>
      expect(f.perform(fleet, stepOf(type, fleet, false), at(seconds)).kind).toBe('written');
    step('PauseRollout', 30);
    expect(rolloutOf(fleet).clock).toEqual({ ran_ms: 30_000, since: null });
    step('ResumeRollout', 90);
    expect(ranMs(rolloutOf(fleet).clock, new Date(at(100).at).toISOString())).toBe(40_000);
    step('HaltRollout', 100);
    expect(rolloutOf(fleet)).toMatchObject({
      state: 'halted',
      reason: 'a reason',
      failed: nodeSet([0]),
      lost: nodeSet([1]),
    });
    step('ResumeRollout', 200);
    const resumed = {
      state: 'running',
      failed: '',
      lost: '',
      reason: null,
      judged_since: new Date(at(200).at).toISOString(),
    };
    expect(rolloutOf(fleet)).toMatchObject({ ...resumed, clock: { ran_ms: 0 } });
    step('SetRolloutClock', 210);
    expect(ranMs(rolloutOf(fleet).clock, new Date(at(211).at).toISOString())).toBe(6_000);
  });

  it('of people are entries that cannot be reverted; those of the service are none', () => {
    const fleet = site();
    roll(fleet, everyNode, 'p');
    const actor = { type: 'user', id: 'anna', name: 'anna' } as const;
    const paused = f.perform(fleet, { type: 'PauseRollout', id: rolloutId('one') }, { actor });
    expect(paused.kind === 'written' && describeCommand(paused.command)).toMatchObject({
      action: 'rollout.pause',
      resource: { type: 'rollout', id: rolloutId('one') },
      changes: [{ path: 'state', before: 'running', after: 'paused' }],
    });
    const refused = f.perform(fleet, { type: 'AdvanceRollout', id: rolloutId('one'), observe: nothingSeen });
    expect(refused).toMatchObject({
      refusal: { code: 'conflict', message: expect.stringContaining('paused') as string },
    });
    f.perform(fleet, { type: 'ResumeRollout', id: rolloutId('one') });
    const converged = f.perform(fleet, stepOf('ConvergeWave', fleet, false));
    expect(converged.kind === 'written' && describeCommand(converged.command)).toBeNull();
  });

  it('are forgotten with the oldest ended rollouts', () => {
    const fleet = site();
    for (let index = 0; index < limits.rollouts.endedKept + 3; index += 1) {
      roll(fleet, f.settings({ multiplex: true, multiplex_port: 7000 + index }), 'p', { id: String(index) });
      f.append(fleet, ...endOf(fleet, rolloutId(String(index))));
    }
    expect(fleet.tables.rollout.size).toBe(limits.rollouts.endedKept);
    expect(fleet.tables.rollout.has(rolloutId('2'))).toBe(false);
    expect(fleet.tables.rollout.has(rolloutId('3'))).toBe(true);
  });
});

describe('a rollout policy', () => {
  it.each([
    [createRolloutPolicy('NONE'), 'name'],
    [createRolloutPolicy('p', { confirm_secs: 60, bake_secs: 119 }), 'bake_secs'],
  ])('is refused by its own rules', (command, field) => {
    f.given().when(command).thenRefused('invalid_request', field);
  });

  it('stays while settings name it, under whatever name', () => {
    const remove = { type: 'DeleteRolloutPolicy', id: rolloutPolicyId('p'), ifMatch: undefined } as const;
    const rename = { type: 'UpdateRolloutPolicy', id: rolloutPolicyId('p'), ifMatch: undefined, name: 'q' } as const;
    const { fleet, when } = f.given(createRolloutPolicy('p'), settingsNaming('p'), rename);
    when(remove).thenRefused('conflict', '"q"', 'rollout_policy');
    when(f.settings({ upgrade_rollout_policy: rolloutPolicyId('other') })).thenRefused(
      'invalid_request',
      'upgrade_rollout_policy',
    );
    f.performAll(fleet, [settingsNaming(null), remove]);
    expect(emptyFleet().singletons.connectivity.value.rollout_policy).toBeNull();
  });
});

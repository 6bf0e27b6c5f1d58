/** `docs/contract/rest.md#l4-chains`: the state of a node in a deployment, and a node's `apply`, which follows the same rule. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { evolveAgentFacts, neverConnected, type NodeAgentFacts } from '../../src/domain/agents/node-agent-facts.js';
import { defaultSettings } from '../../src/domain/settings/settings.js';
import type { NodeState } from '../../src/domain/node/node.js';
import { applyState, deploymentState } from '../../src/reports/apply-state.js';
import type { RestDeps } from '../../src/transport/rest/build.js';
import { nodeView } from '../../src/transport/rest/resources/node-view.js';

const at = '2030-01-01T00:00:00.000Z';
const facts = (applied: number | null, rejected: number | null, appliedSince = false): NodeAgentFacts => ({
  connected_once: true,
  agent_version: null,
  detected_addresses: [],
  reported_multiplex: null,
  reported_multiplex_port: null,
  features: [],
  applied: applied === null ? null : { generation: applied, checksum: '', at, duration_ms: 1 },
  rejected:
    rejected === null
      ? null
      : { generation: rejected, checksum: '', at, errors: [], ...(appliedSince && { applied_since: true as const }) },
  duplicate_until: null,
  version_conflict_at: null,
});

test.each([
  [5, 7, null, 5, 'applied'],
  [6, 5, 6, 6, 'rejected'],
  [6, 5, null, 6, 'pushed'],
  [6, 5, 5, 5, 'none'],
  [6, null, null, null, 'none'],
] as const)(
  'generation %i, applied %s, rejected %s, pushed %s: the state is %s',
  (generation, applied, rejected, pushed, state) => {
    const push = pushed === null ? undefined : { generation: pushed, at };
    expect(applyState(generation, facts(applied, rejected), push).state).toBe(state);
  },
);

test('an apply that comes after the reject of a later generation counts for what it reaches', () => {
  expect(applyState(5, facts(5, 6, true), undefined)).toMatchObject({ state: 'applied', generation: 5 });
  expect(applyState(6, facts(5, 6, true), undefined)).toMatchObject({ state: 'rejected', generation: 6 });
});

/** Tells the state from the reports in their order, as the contract puts it. */
function byTheContract(
  wanted: number,
  reports: readonly { readonly kind: string; readonly generation: number }[],
): string {
  return reports.filter(({ generation }) => generation >= wanted).at(-1)?.kind ?? 'none';
}

test('of the reports on a generation and later ones, the last one in the log is the state', () => {
  // What agents report on: the newest generation, or the last that they applied.
  const step = fc.record({ deploys: fc.boolean(), applies: fc.boolean(), newest: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const reports: { kind: 'applied' | 'rejected'; generation: number }[] = [];
      let [newest, kept, agent] = [1, 0, neverConnected];
      for (const { deploys, applies, newest: onNewest } of steps) {
        if (deploys) newest += 1;
        const generation = onNewest || kept === 0 ? newest : kept;
        if (applies) kept = generation;
        const data = { node_id: 'n', generation, checksum: '' } as const;
        reports.push({ kind: applies ? 'applied' : 'rejected', generation });
        agent = evolveAgentFacts(
          agent,
          applies
            ? { type: 'AgentConfigApplied', data: { ...data, duration_ms: 1 } }
            : { type: 'AgentConfigRejected', data: { ...data, errors: [] } },
          at,
          's1',
        );
        for (let wanted = 1; wanted <= newest; wanted += 1) {
          expect(applyState(wanted, agent, undefined).state).toBe(byTheContract(wanted, reports));
        }
      }
    }),
  );
});

const maybe = fc.option(fc.integer({ min: 1, max: 6 }));
test('a deployment and a node view say the same wherever both know the state', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 6 }),
      maybe,
      maybe,
      maybe,
      fc.boolean(),
      (generation, applied, rejected, pushed, online) => {
        const push = pushed === null ? undefined : { generation: pushed, at };
        const node = applyState(generation, facts(applied, rejected), push).state;
        const deployment = deploymentState(generation, facts(applied, rejected), push, online).state;
        if (node === 'applied' || node === 'rejected') expect(deployment).toBe(node);
        else expect(deployment).toBe(!online ? 'offline' : node === 'pushed' ? 'pushed' : 'pending');
      },
    ),
  );
});

test('a deleted node is offline in a deployment', () => {
  expect(deploymentState(3, neverConnected, undefined, false)).toEqual({ state: 'offline', errors: [] });
});

test('a duplicate agent is shown until the hour of its fact is over', () => {
  const until = Date.parse(at);
  const duplicate: NodeAgentFacts = { ...facts(null, null), duplicate_until: at };
  const shownAt = (now: number): boolean => {
    const deps = {
      agentFacts: { of: () => duplicate },
      reports: { presence: () => undefined, vitals: () => ({}), listenerStates: () => undefined },
      delivery: { pushed: () => undefined },
      fleet: {
        generation: () => 1,
        heldBy: () => undefined,
        liveListeners: () => new Set(),
        settings: () => defaultSettings,
      },
      clock: { now: () => now, monotonic: () => 0 },
    } as unknown as RestDeps;
    return nodeView(deps, { id: 'n', psk: null } as NodeState).duplicate_agent;
  };
  expect([until - 3_600_000, until - 1, until].map(shownAt)).toEqual([true, true, false]);
});

/** What a rollout's page works out: its words, its waves, the steps, and the form of a policy (`docs/contract/rollouts.md`). */
import { describe, expect, test } from 'vitest';
import { sentOf, valuesOf } from '../../console/src/rollout-policies/policy-values.js';
import type { RolloutPolicy } from '../../console/src/rollout-policies/rollout-policies.js';
import { wavesInWords } from '../../console/src/rollout-policies/waves.js';
import { possibleSteps, waveState } from '../../console/src/rollouts/steps.js';
import { titleOf } from '../../console/src/rollouts/title.js';

const counts = { held: 0, pushed: 0, applied: 0, rejected: 0, failed: 0, lost: 0, offline: 0 };
const released = { released_at: '2030-01-31T12:00:00.000Z', converged_at: null, counts };
const held = { released_at: null, converged_at: null, counts };

describe('a wave', () => {
  test.each([
    ['running', 2, ['done', 'applying', 'waiting']],
    ['baking', 2, ['done', 'baking', 'waiting']],
    ['paused', 2, ['done', 'stopped', 'waiting']],
    ['halted', 2, ['done', 'stopped', 'waiting']],
    ['cancelled', 2, ['done', 'stopped', 'waiting']],
    // All were released at once, before their turn.
    ['completed', 2, ['done', 'done', 'done']],
  ] as const)('of a rollout that is %s in wave %i', (state, wave, expected) => {
    const rollout = { state, wave, waves: [released, released, held] };
    expect(rollout.waves.map((_, index) => waveState(rollout, index))).toEqual(expected);
  });
});

test('only steps that the service would take are offered, and no revert of an upgrade', () => {
  expect(possibleSteps({ state: 'baking', entry_id: 'e' })).toEqual(['advance', 'pause', 'complete', 'revert']);
  expect(possibleSteps({ state: 'halted', entry_id: null })).toEqual(['resume', 'complete']);
  expect(possibleSteps({ state: 'completed', entry_id: 'e' })).toEqual([]);
});

test.each([
  ['l4_chain.deploy', 'front', 'e', 'Deploy chain front'],
  ['connectivity.update', 'connectivity', 'e', 'Change settings'],
  ['l3_network.delete', 'offices', 'e', 'Delete L3 network offices'],
  ['service.upgrade', null, null, 'Upgrade of the compiler'],
])('%s of %s reads as a sentence', (action, name, entry_id, title) => {
  const [type = ''] = action.split('.');
  expect(titleOf({ action, resource: { type, id: 'r', name }, entry_id })).toBe(title);
});

test('what the form of a policy shows is sent back as it was, numbers as numbers and shares as texts', () => {
  const policy = {
    name: 'careful',
    waves: [{ labels: { canary: 'yes', lab: '' } }, { nodes: 1 }, { nodes: '10%' }],
    bake_secs: 60,
    apply_timeout_secs: 120,
    max_failed: 2,
    max_lost: '5%',
    on_failure: 'revert',
    confirm_secs: null,
  } as const;
  expect(sentOf(valuesOf(policy as unknown as RolloutPolicy))).toEqual(policy);
  expect(sentOf({ max_lost: ' 7 ' })).toEqual({ max_lost: 7 });
  expect(wavesInWords(policy as unknown as RolloutPolicy)).toBe('canary:yes, lab → 1 node → 10% → the rest');
});

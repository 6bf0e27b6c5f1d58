/** How far a machine is that has joined, and whether its token lets more in (`docs/contract/joining.md`). */
import { expect, test } from 'vitest';
import { machineState, tokenState } from '../../console/src/join-tokens/machine-state.js';

test.each([
  ['pending', 'none', 'joined'],
  // Compiled for, and not there to take it.
  ['pending', 'pushed', 'joined'],
  ['online', 'none', 'connected'],
  ['online', 'pushed', 'applying'],
  ['online', 'applied', 'applied'],
  ['online', 'rejected', 'rejected'],
  // What it applied last says nothing of now.
  ['offline', 'applied', 'offline'],
] as const)('a machine whose node is %s and %s is shown as %s', (status, state, shown) => {
  expect(machineState({ status, apply: { state } })).toBe(shown);
});

test('a node that is deleted since is no machine that waits', () => expect(machineState('deleted')).toBe('deleted'));

test('a token whose uses are spent is used up, also when it has expired', () => {
  expect(tokenState({ used: 1, uses: 2, expired: false })).toBe('open');
  expect(tokenState({ used: 2, uses: 2, expired: true })).toBe('used up');
  expect(tokenState({ used: 1, uses: 2, expired: true })).toBe('expired');
});

/** How far a run of diagnostics is (`docs/contract/agent-protocol.md`, "Diagnostics"). */
import { expect, test } from 'vitest';
import { isAwaited, worstFirst } from '../../console/src/nodes/diagnostics.js';

const at = (seconds: number): string => new Date(seconds * 1_000).toISOString();

test.each([
  ['queued', 599, true],
  // Nobody fetched it: it has expired, though the service has yet to say so.
  ['queued', 600, false],
  ['delivered', 69, true],
  // No agent takes a minute.
  ['delivered', 70, false],
  ['answered', 11, false],
  ['expired', 601, false],
] as const)('a run that is %s is awaited after %i s: %s', (state, seconds, awaited) => {
  const run = { state, expires_at: at(600), delivered_at: state === 'queued' ? null : at(10) };
  expect(isAwaited(run, seconds * 1_000)).toBe(awaited);
  expect(isAwaited(undefined, 0)).toBe(false);
});

test('what needs attention stands first, all else as the agent has it', () => {
  const item = (name: string, ok: boolean) => ({ name, value: '', ok });
  expect(
    worstFirst([item('a', true), item('b', false), item('c', true), item('d', false)]).map(({ name }) => name),
  ).toEqual(['b', 'd', 'a', 'c']);
});

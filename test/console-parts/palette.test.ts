/** What the command palette looks for, and in which order it shows it (`docs/contract/console.md#pages`). */
import { describe, expect, test } from 'vitest';
import { inOrder, wantedOf, type Item } from '../../console/src/app/palette-items.js';

describe('what is typed', () => {
  test.each([
    ['edge', undefined, 'edge', undefined],
    ['  edge 1 ', undefined, 'edge 1', undefined],
    ['443', undefined, '443', 443],
    [':8443', undefined, ':8443', 8443],
    ['0.0.0.0:443', undefined, '0.0.0.0:443', 443],
    ['70000', undefined, '70000', undefined],
    ['192.0.2.1', undefined, '192.0.2.1', undefined],
    // A verb needs something to be done with, which may be anything yet.
    ['deploy', undefined, 'deploy', undefined],
    ['Deploy ', 'deploy', '', undefined],
    ['issue edge 1', 'issue', 'edge 1', undefined],
    ['rotate 443', 'rotate', '443', undefined],
    ['remove edge', undefined, 'remove edge', undefined],
  ] as const)('as %j is wanted as verb %s, words %j, port %s', (typed, verb, q, port) => {
    expect(wantedOf(typed)).toEqual({ verb, q, port });
  });
});

test('pages that begin with the words come first, then resources, first the one that is called so', () => {
  const item = (label: string): Item => ({ key: label, label, hint: '', run: () => undefined });
  const own = [item('Nodes'), item('Add node'), item('Audit')];
  const labels = (typed: string, ...resources: readonly string[]): readonly string[] =>
    inOrder(typed, own, resources.map(item)).map(({ label }) => label);
  expect(labels('node', 'my node', 'Node')).toEqual(['Nodes', 'Node', 'my node', 'Add node']);
  expect(labels('')).toEqual(['Nodes', 'Add node', 'Audit']);
  expect(labels('x', 'x1')).toEqual(['x1']);
});

/** Label changes: each label is a field of its own in an event, `labels.<key>`, with null for a missing label. */
import type { Changes } from '../resource/change.js';

export type Labels = { readonly [key: string]: string };

const labelPrefix = 'labels.';

export function isLabelField(field: string): boolean {
  return field.startsWith(labelPrefix);
}

/** The labels after changes, sorted by key. Other fields are ignored. */
export function evolveLabels(labels: Labels, changes: Changes): Labels {
  const next = new Map(Object.entries(labels));
  for (const [field, { to }] of Object.entries(changes)) {
    if (!isLabelField(field)) continue;
    const key = field.slice(labelPrefix.length);
    if (typeof to === 'string') next.set(key, to);
    else next.delete(key);
  }
  return inOrder([...next]);
}

/** The labels of a new node. */
export function sortedLabels(labels: Labels): Labels {
  return inOrder(Object.entries(labels));
}

const inOrder = (labels: [string, string][]): Labels => Object.fromEntries(labels.sort(([a], [b]) => (a < b ? -1 : 1)));

/** The changes from one set of labels to another. */
export function labelChanges(from: Labels, to: Labels): Changes {
  // Maps, because a label may be called `constructor`.
  const [before, after] = [new Map(Object.entries(from)), new Map(Object.entries(to))];
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter((key) => before.get(key) !== after.get(key));
  return Object.fromEntries(
    changed.sort().map((key) => [labelPrefix + key, { from: before.get(key) ?? null, to: after.get(key) ?? null }]),
  );
}

/** The filters of the feed. Cites `docs/contract/automation.md#event-feed`. */
import { expect, test } from 'vitest';
import { matcherOf, mayRead, type FeedFilters } from '../../src/feed/filters.js';
import type { Feed } from '../../src/feed/port.js';

type FeedSubject = Awaited<ReturnType<Feed['read']>>['items'][number]['about'];

const update: FeedSubject = {
  type: 'command',
  resources: [{ type: 'l4_chain', id: 'c1' }],
  nodes: ['n1', 'n2'],
  actor: { id: 'u1', name: 'Anna' },
  readers: 'all',
};
const session: FeedSubject = {
  type: 'session',
  resources: [{ type: 'node', id: 'n1' }],
  nodes: ['n1'],
  actor: null,
  readers: 'all',
};
const matches = (filters: FeedFilters, about: FeedSubject): boolean => matcherOf(filters)(about);

test('values of one list are alternatives, and all lists must match', () => {
  expect(matches({}, update)).toBe(true);
  expect(matches({ types: ['apply', 'command'] }, update)).toBe(true);
  expect(matches({ types: ['command'], resource_type: ['node'] }, update)).toBe(false);
  expect(matches({ resource_type: ['l4_chain', 'node'], resource_id: ['c1'] }, update)).toBe(true);
  expect(matches({ resource_id: ['c2'] }, update)).toBe(false);
});

test('a command matches the nodes that it touched, and every node when it touched too many to name', () => {
  expect(matches({ node_id: ['n3', 'n2'] }, update)).toBe(true);
  expect(matches({ node_id: ['n3'] }, update)).toBe(false);
  expect(matches({ node_id: ['n3'] }, { ...update, nodes: 'all' })).toBe(true);
});

test('an actor is an id or a name in any case, and never matches a fact', () => {
  expect(matches({ actor: ['anna'] }, update)).toBe(true);
  expect(matches({ actor: ['u1'] }, update)).toBe(true);
  expect(matches({ actor: ['u2'] }, update)).toBe(false);
  expect(matches({ actor: ['n1'] }, session)).toBe(false);
});

test('the type node and its id match what happened to the node itself', () => {
  expect(matches({ resource_type: ['node'], resource_id: ['n1'] }, session)).toBe(true);
  expect(matches({ resource_type: ['session'] }, session)).toBe(false);
});

test('what is for admins, or for one user, is hidden from others', () => {
  const reader = { admin: false, userId: 'u1' };
  expect(mayRead(update, reader)).toBe(true);
  expect(mayRead({ ...update, readers: 'admins' }, reader)).toBe(false);
  expect(mayRead({ ...update, readers: 'admins' }, { ...reader, admin: true })).toBe(true);
  expect(mayRead({ ...update, readers: { userId: 'u1' } }, reader)).toBe(true);
  expect(mayRead({ ...update, readers: { userId: 'u2' } }, reader)).toBe(false);
});

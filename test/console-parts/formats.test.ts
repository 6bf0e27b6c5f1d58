/** Figures, dates and sentences as the console writes them (`docs/contract/console.md#look`). */
import { describe, expect, test } from 'vitest';
import { text as nodesText } from '../../console/src/nodes/nodes.text.js';
import { actorName } from '../../console/src/shared/ui/actor.js';
import {
  formatAddress,
  formatBytes,
  formatCount,
  formatDuration,
  formatListener,
  formatMilliseconds,
  formatRelative,
  formatShare,
  formatTime,
} from '../../console/src/shared/ui/format.js';
import { sentenceOf } from '../../console/src/shared/ui/sentence.js';

const sources = import.meta.glob<string>('../../console/src/**/*.{ts,tsx}', {
  query: '?raw',
  import: 'default',
  eager: true,
});

describe('formats', () => {
  test('one node is not several', () => {
    const { deleteThem, deletedThem, labelThem, labelled, tellThem } = nodesText;
    const said = [deleteThem, deletedThem, labelThem, labelled, (count: string) => tellThem('Reload', count)];
    expect(said.filter((words) => /1 nodes/.test(words('1')) || !/2 nodes/.test(words('2')))).toEqual([]);
  });

  test('no other file makes formats, which would follow the language of the browser', () => {
    const makes = Object.entries(sources).filter(([, source]) => /\bIntl\.|\.toLocale/.test(source));
    expect(makes.map(([path]) => path)).toEqual(['../../console/src/shared/ui/format.ts']);
    expect(makes[0]?.[1]).not.toMatch(/Format\((undefined|\))/);
  });

  test.each([
    [formatCount(1_234_567), '1,234,567'],
    [formatShare(0.125), '13%'],
    [formatMilliseconds(34.56), '34.6 ms'],
    [formatMilliseconds(1_250), '1.25 s'],
    [formatBytes(0), '0 B'],
    [formatBytes(1023), '1,023 B'],
    [formatBytes(1536), '1.5 KiB'],
    [formatBytes(1024 ** 5), '1 PiB'],
    [formatBytes(1024 ** 6), '1,024 PiB'],
    [formatAddress('0.0.0.0', 443), '0.0.0.0:443'],
    [formatAddress('2001:db8::1', 443), '[2001:db8::1]:443'],
    [formatListener('udp', '::', 53), 'udp [::]:53'],
  ])('%s', (shown, expected) => expect(shown).toBe(expected));

  test.each([
    [0, '0 seconds'],
    [1, '1 second'],
    [59, '59 seconds'],
    [60, '1 minute'],
    [7_199, '1 hour'],
    [2 * 86_400, '2 days'],
    [400 * 86_400, '1 year'],
  ])('%d s last %s, in the largest unit that fits', (seconds, shown) => expect(formatDuration(seconds)).toBe(shown));

  const now = Date.parse('2030-01-15T12:00:00.000Z');
  test.each([
    [0, 'just now'],
    // The clocks of reader and service differ a little.
    [9, 'just now'],
    [-9, 'just now'],
    [-44, '40 seconds ago'],
    [-59, '50 seconds ago'],
    [-60, '1 minute ago'],
    [-86_399, '23 hours ago'],
    [12 * 86_400, 'in 12 days'],
    [366 * 86_400, 'in 1 year'],
  ])('what is %d s away is %s', (seconds, shown) => {
    expect(formatRelative(new Date(now + seconds * 1_000).toISOString(), now)).toBe(shown);
  });

  test('a time is exact with its zone, or a part of that', () => {
    expect(formatTime(now)).toMatch(/^1[456] Jan 2030, \d\d:\d\d:00 \S+$/);
    expect(formatTime(now, 'day')).toMatch(/^1[456] Jan$/);
    expect(formatTime(now, 'minute')).toMatch(/^\d\d:\d\d$/);
    expect(formatTime(now, 'clock')).toMatch(/^\d\d:\d\d:00$/);
  });
});

describe('sentences', () => {
  test('a refusal is a sentence with its request id', () => {
    expect(sentenceOf({ sentence: 'endpoint: expected host:port', requestId: 'r-1' })).toBe(
      'Endpoint: expected host:port (request r-1)',
    );
    expect(sentenceOf({ sentence: 'the service does not answer', requestId: null })).toBe(
      'The service does not answer.',
    );
  });

  test('an actor is a person, an agent with its node, or the service', () => {
    expect(actorName({ type: 'user', id: 'u', name: 'anna' })).toBe('anna');
    expect(actorName({ type: 'user', id: 'u', name: null })).toBe('unknown');
    expect(actorName({ type: 'agent', id: 'n', name: 'edge-1' })).toBe('an agent (edge-1)');
    expect(actorName({ type: 'system', id: null, name: null })).toBe('the service');
  });
});

/** Public addresses that hellos report (`docs/contract/domain.md#generation`). */
import { beforeEach, expect, test } from 'vitest';
import type { NodeState } from '../../src/domain/node/node.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { createAddressReports } from '../../src/transport/agent/address-reports.js';
import { createManualClock } from '../support/manual-clock.js';

const clock = createManualClock();
let known: Pick<NodeState, 'public_ipv4' | 'public_ipv6'>;
let recorded: (readonly [string | null, string | null])[];
let reports: ReturnType<typeof createAddressReports>;
beforeEach(() => {
  known = { public_ipv4: '203.0.113.1', public_ipv6: '2001:db8::1' };
  recorded = [];
  reports = createAddressReports(
    { delivery: { node: () => known as NodeState }, clock, logger: silentLogger },
    async (_nodeId, ipv4, ipv6) => {
      recorded.push([ipv4, ipv6]);
      known = { public_ipv4: ipv4, public_ipv6: ipv6 };
    },
  );
});

const hello = (publicIpv4: string, publicIpv6: string): void => reports.hello('node', { publicIpv4, publicIpv6 });

test('a hello without one of the addresses keeps the known one', () => {
  hello('203.0.113.2', '');
  expect(recorded).toEqual([['203.0.113.2', '2001:db8::1']]);
  clock.advance(60_000);
  reports.sweep();
  hello('', '2001:db8::2');
  expect(recorded.at(-1)).toEqual(['203.0.113.2', '2001:db8::2']);
});

test('a hello with the known addresses, however they are spelled, changes nothing and waits for nothing', () => {
  hello('203.0.113.1', '2001:DB8:0::1');
  expect(recorded).toEqual([]);
  hello('203.0.113.2', '2001:DB8:0::1');
  expect(recorded).toEqual([['203.0.113.2', '2001:db8::1']]);
});

test('an IPv4-mapped IPv6 address is that IPv4 address', () => {
  hello('::ffff:203.0.113.1', '');
  expect(recorded).toEqual([]);
  hello('::FFFF:203.0.113.2', '');
  expect(recorded.at(-1)?.[0]).toBe('203.0.113.2');
});

test('a hello of a node that was deleted changes nothing, nor does one that waits', () => {
  hello('203.0.113.2', '');
  hello('203.0.113.3', '');
  known = undefined as never;
  clock.advance(60_000);
  reports.sweep();
  hello('203.0.113.4', '');
  expect(recorded).toHaveLength(1);
});

test('a report that cannot be recorded is told with its node', async () => {
  const warnings: object[] = [];
  const failing = createAddressReports(
    {
      delivery: { node: () => known as NodeState },
      clock,
      logger: { ...silentLogger, warn: (fields) => void warnings.push(fields) },
    },
    () => Promise.reject(new Error('away')),
  );
  failing.hello('node', { publicIpv4: '203.0.113.9', publicIpv6: '' });
  await new Promise((resolve) => setImmediate(resolve));
  expect(warnings).toEqual([{ node_id: 'node', error: 'Error: away' }]);
});

test('a hello with no address, or with none that is one, changes nothing', () => {
  hello('', '');
  hello('evil host', 'a b');
  expect(recorded).toEqual([]);
});

test('within a minute of a change only the last report counts, once the minute is over', () => {
  hello('203.0.113.2', '');
  hello('203.0.113.3', '');
  hello('203.0.113.4', '');
  clock.advance(59_000);
  reports.sweep();
  expect(recorded).toHaveLength(1);
  clock.advance(1_000);
  reports.sweep();
  expect(recorded.slice(1)).toEqual([['203.0.113.4', '2001:db8::1']]);
});

test('of an agent whose address changes all the time six an hour count, and the last one once the hour is over', () => {
  for (let minute = 0; minute < 60; minute += 1) {
    hello(`203.0.113.${10 + minute}`, '');
    reports.sweep();
    clock.advance(60_000);
  }
  expect(recorded.map(([ipv4]) => ipv4)).toEqual([10, 11, 12, 13, 14, 15].map((last) => `203.0.113.${last}`));
  reports.sweep();
  expect(recorded.at(-1)).toEqual(['203.0.113.69', '2001:db8::1']);
});

test('a report that waited does not come after a newer one', () => {
  hello('203.0.113.2', '');
  hello('203.0.113.3', '');
  clock.advance(60_000);
  hello('203.0.113.4', '');
  clock.advance(60_000);
  reports.sweep();
  expect(recorded.map(([ipv4]) => ipv4)).toEqual(['203.0.113.2', '203.0.113.4']);
});

/** How many there are of each resource (`docs/contract/rest.md#dashboard`), counted in pieces. */
import { describe, expect, it } from 'vitest';
import type { ChainState } from '../../src/domain/chain/chain.js';
import { countResources } from '../../src/domain/fleet/counts.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import * as f from '../support/fleet.js';
import * as l3 from '../support/l3-networks.js';

const now = Date.UTC(2026, 0, 1);
const day = 24 * 60 * 60 * 1000;

function counted(fleet: Fleet) {
  const counting = countResources(fleet, now);
  for (let pauses = 0; ; pauses += 1) {
    const { done, value } = counting.next();
    if (done === true) return { pauses, ...value };
  }
}

describe('the counts of resources', () => {
  it('are zero in an empty fleet', () => {
    const none = { total: 0, enabled: 0 };
    expect(counted(emptyFleet())).toEqual({
      pauses: 0,
      l4_chains: { ...none, deployed: 0, modified: 0 },
      l4_upstreams: none,
      routes: none,
      l3_networks: none,
      credentials: { total: 0, expiring_30d: 0, expired: 0 },
    });
  });

  it('tell enabled from disabled, chains by status, and credentials by expiry', () => {
    const chains = ['draft', 'deployed', 'live', 'modified', 'off', 'off too', 'off and live'];
    const until = (ms: number) => f.rotatedTo(`${ms}`, { not_after: new Date(now + ms).toISOString() });
    const members = [l3.member('a', '10.1.0.1/32'), l3.member('b', '10.1.0.2/32')];
    const { fleet } = f.given(
      f.createNode('a'),
      f.createNode('b'),
      ...l3.identity(),
      ...[-1, 0, 1, 30 * day, 30 * day + 1].map((ms) => f.createTlsCert(`cert ${ms}`, until(ms))),
      ...chains.map((name, index) => f.createChain(name, [f.hop('a', 1000 + index)])),
      ...['deployed', 'live', 'modified', 'off and live'].map((name) => f.deployChain(name)),
      f.updateChain('modified', { hops: [f.hop('b', 9)] }),
      ...['off', 'off too', 'off and live'].map((name) => f.updateChain(name, { enabled: false })),
      f.createUpstream('up'),
      f.createUpstream('down', { enabled: false }),
      f.createUpstream('down too', { endpoint: 'down.example:1', enabled: false }),
      f.createRoute('one', [f.routeHop('a', 8080)]),
      f.createRoute('two', [f.routeHop('a', 8080)]),
      f.createRoute('off', [f.routeHop('a', 8080)], { enabled: false }),
      l3.createNetwork('net', members, [], { enabled: false }),
    );
    expect(counted(fleet)).toEqual({
      pauses: 0,
      l4_chains: { total: 7, enabled: 4, deployed: 2, modified: 1 },
      l4_upstreams: { total: 3, enabled: 1 },
      routes: { total: 3, enabled: 2 },
      l3_networks: { total: 1, enabled: 0 },
      credentials: { total: 7, expiring_30d: 2, expired: 2 },
    });
  });

  it('pause after each thousand', () => {
    const fleet = emptyFleet();
    const chain = { enabled: true, deployed: null } as ChainState;
    const upstream = { enabled: true } as never;
    for (let index = 0; index < 2001; index += 1) fleet.tables.l4_chain.set(`${index}`, chain);
    for (let index = 0; index < 1000; index += 1) fleet.tables.l4_upstream.set(`${index}`, upstream);
    for (let index = 0; index < 999; index += 1) fleet.tables.route.set(`${index}`, upstream);
    expect(counted(fleet)).toMatchObject({
      pauses: 3,
      l4_chains: { total: 2001, enabled: 2001, deployed: 0, modified: 0 },
      l4_upstreams: { total: 1000, enabled: 1000 },
      routes: { total: 999, enabled: 999 },
    });
  });
});

/** What the page of a chain works out: the one word of a hop, the arrow into it, the address for clients. */
import { describe, expect, test } from 'vitest';
import { clientAddressOf } from '../../console/src/chains/client-address.js';
import { arrowOf, moodOf, shownOf } from '../../console/src/chains/hop-state.js';
import { pathChanges } from '../../console/src/chains/path-changes.js';
import type { Definition, Hop } from '../../console/src/chains/chains.js';

type Status = Parameters<typeof shownOf>[0];
const well: Status = {
  node_id: 'n',
  node_name: 'edge',
  listen_addr: '0.0.0.0',
  listen_port: 443,
  deployed: true,
  status: 'online',
  state: 'running',
  stale: false,
  reported_at: null,
};

describe('what a hop says', () => {
  test.each([
    ['online, applied and running', {}, 'applied', ['listener'], 'good'],
    ['online, and its listener failed', { state: 'failed' }, 'applied', ['listener'], 'bad'],
    ['offline with a last known listener', { status: 'offline', stale: true }, 'offline', ['node', 'listener'], 'bad'],
    ['never connected', { status: 'pending', state: null }, 'pending', ['node'], 'idle'],
    ['rejecting the newest while the one before runs', {}, 'rejected', ['progress', 'listener'], 'warning'],
    ['rejecting the first', { state: null }, 'rejected', ['progress'], 'bad'],
    ['waiting for the first', { state: null }, 'pushed', ['progress'], 'idle'],
    ['not deployed', { deployed: false, state: null }, undefined, ['listener'], 'idle'],
  ] as const)('given one that is %s', (_name, changed, progress, shown, arrow) => {
    const status = { ...well, ...changed } as Status;
    expect(shownOf(status, progress)).toEqual(shown);
    expect(arrowOf(status, progress, undefined)).toBe(arrow);
  });

  test('given a deployment of which a rollout still holds a node, it is under way', () => {
    expect(moodOf(['applied', 'held'])).toBe('busy');
    expect(moodOf(['applied', 'held', 'rejected'])).toBe('bad');
    expect(moodOf(['applied', 'offline'])).toBe('warning');
    expect(moodOf(['applied', 'applied'])).toBe('good');
  });

  test('given a link that loses much, the arrow is degraded', () => {
    const link = { loss_ratio: 0.5 } as Parameters<typeof arrowOf>[2];
    expect(arrowOf(well, 'applied', link)).toBe('warning');
  });
});

describe('the address for clients', () => {
  const hop = (changed: Partial<Hop>): Hop => ({
    node_id: 'n',
    listen_addr: '0.0.0.0',
    listen_port: 443,
    outer: 'tcp',
    security: 'raw',
    ...changed,
  });
  const machine = { address: 'edge.example', public_ipv4: '203.0.113.5', public_ipv6: null };

  test.each([
    ['the node has an address', hop({}), machine, 'edge.example:443'],
    ['only its agent tells one', hop({}), { ...machine, address: null }, '203.0.113.5:443'],
    ['the hop has one of its own', hop({ dial_addr: '198.51.100.7' }), machine, '198.51.100.7:443'],
    ['it listens on loopback', hop({ listen_addr: '127.0.0.1' }), machine, '127.0.0.1:443'],
    ['it is IPv6', hop({ dial_addr: '2001:db8::1' }), machine, '[2001:db8::1]:443'],
    ['nothing tells', hop({}), { address: null, public_ipv4: null, public_ipv6: null }, undefined],
    [
      'only the listener tells',
      hop({ listen_addr: '203.0.113.9' }),
      { address: null, public_ipv4: null, public_ipv6: null },
      '203.0.113.9:443',
    ],
  ])('given that %s', (_name, given, of, expected) => {
    expect(clientAddressOf(given, of)).toBe(expected);
  });
});

describe('what the next deploy changes', () => {
  const hop = (node_id: string, changed: Partial<Hop> = {}): Hop => ({
    node_id,
    listen_addr: '0.0.0.0',
    listen_port: 443,
    outer: 'tcp',
    security: 'raw',
    ...changed,
  });
  const chain = (hops: readonly Hop[], target: Definition['target'] = { upstream_id: 'u' }): Definition => ({
    payload: 'tcp',
    hops: [...hops],
    target,
  });
  const told = (before: Definition, after: Definition) =>
    pathChanges(before, after).hops.map(({ hop: { node_id: id }, kind, changes }) =>
      [id, kind, ...changes.map((one) => `${one.path} ${String(one.before)} ${String(one.after)}`)].join(' '),
    );
  const [a, b, c] = [hop('a'), hop('b'), hop('c')];

  test('is nothing where the draft is as deployed', () => {
    expect(pathChanges(chain([a, b]), chain([a, b]))).toEqual({
      hops: [a, b].map((one) => ({ hop: one, kind: 'kept', changes: [] })),
      payload: [],
      target: [],
    });
  });

  test('stands beside its hop: changed, gone, and added behind the hop that it follows', () => {
    const after = chain([hop('d'), a, hop('e'), hop('c', { listen_port: 8443 })]);
    expect(told(chain([a, b, c]), after)).toEqual([
      'd added',
      'a kept',
      'e added',
      'b gone',
      'c changed listen_port 443 8443',
    ]);
  });

  test('tells a hop that moves among those that stay, and not what only comes after an added or a lost one', () => {
    expect(told(chain([a, b, c]), chain([b, a, c]))).toEqual(['a changed place 1 2', 'b changed place 2 1', 'c kept']);
    expect(told(chain([a, b, c]), chain([b, c]))).toEqual(['a gone', 'b kept', 'c kept']);
  });

  test('has the target and the payload apart', () => {
    const { target } = pathChanges(chain([a]), chain([a], { endpoint: 'x:1' }));
    expect(target).toEqual([
      { path: 'upstream_id', before: 'u', after: undefined },
      { path: 'endpoint', before: undefined, after: 'x:1' },
    ]);
    const udp = { ...chain([a]), payload: 'udp' } as const;
    expect(pathChanges(chain([a]), udp).payload).toEqual([{ path: 'payload', before: 'tcp', after: 'udp' }]);
  });
});

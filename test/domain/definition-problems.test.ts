/**
 * The rules that definitions keep by themselves, as bodies of requests are checked: whole definitions and the fields of one
 * that an edit sends (`docs/contract/domain.md#l4-chain`, `#l3-network`, `#legacy-route`).
 */
import { describe, expect, it } from 'vitest';
import { definitionProblems as chainProblems, type PartialDefinition } from '../../src/domain/chain/definition.js';
import { definitionProblems as networkProblems, type PartialNetwork } from '../../src/domain/l3-network/definition.js';
import { routeProblems } from '../../src/domain/route/route.js';

const pathsOf = (problems: Iterable<{ readonly path: readonly (string | number)[] }>) =>
  [...problems].map(({ path }) => path.join('.'));

describe('the definition of a chain', () => {
  const tcp = (node: string, fields: object = {}) =>
    ({ node_id: node, outer: 'tcp', security: 'raw', ...fields }) as const;
  const tls = (node: string, ...server_names: readonly string[]) =>
    ({ node_id: node, outer: 'tcp', security: 'tls', credential_id: 'c', server_names }) as const;
  const pins = { server_name: 'x', spki_pins_sha256: [] };
  const reality = { outer: 'tcp', public_key: 'k', server_name: 'x', short_id: '' } as const;
  const overQuic = { ...reality, outer: 'quic' } as const;

  it.each<[string, PartialDefinition, readonly string[]]>([
    ['that sends nothing has no problem', {}, []],
    ['without hops has no problem with its target', { target: { endpoint: 'x:1', tls: pins } }, []],
    ['of payload tcp may end in TLS', { payload: 'tcp', target: { endpoint: 'x:1', tls: pins } }, []],
    ['of payload udp may not', { payload: 'udp', target: { endpoint: 'x:1', tls: pins } }, ['target.tls']],
    ['of payload tcp may end in a REALITY server', { payload: 'tcp', target: { endpoint: 'x:1', reality } }, []],
    ['of payload udp may do so over QUIC', { payload: 'udp', target: { endpoint: 'x:1', reality: overQuic } }, []],
    [
      'of payload udp may not over tcp',
      { payload: 'udp', target: { endpoint: 'x:1', reality } },
      ['target.reality.outer'],
    ],
    ['may not end in both', { target: { endpoint: 'x:1', tls: pins, reality } }, ['target.reality']],
    ['of payload udp may end in an endpoint', { payload: 'udp', target: { endpoint: 'x:1' } }, []],
    ['of payload udp may leave its target out', { payload: 'udp' }, []],
    ['may have wildcards alone where traffic enters', { hops: [tls('a', '*.x.example')] }, []],
    [
      'needs an exact name where a hop is dialled',
      { hops: [tcp('z'), tls('a', '*.x.example')] },
      ['hops.1.server_names'],
    ],
    ['may have a wildcard beside it', { hops: [tcp('z'), tls('a', '*.x.example', 'x.example')] }, []],
    ['may take the names of its certificate', { hops: [tcp('z'), tls('a')] }, []],
    ['may read names before TLS ends', { hops: [tcp('z', { server_names: ['x'] }), tls('a', 'x')] }, []],
    [
      'cannot read names behind it',
      { hops: [tls('a', 'x'), tcp('b', { server_names: ['x'] })] },
      ['hops.1.server_names'],
    ],
    ['may have two hops with TLS', { hops: [tls('a', 'x'), tls('b', 'x')] }, []],
    ['may have hops without names behind TLS', { hops: [tls('a', 'x'), tcp('b'), tcp('c', { server_names: [] })] }, []],
    ['has each node once', { hops: [tcp('a'), tcp('b'), tcp('a'), tcp('b')] }, ['hops.2.node_id', 'hops.3.node_id']],
  ])('%s', (_, definition, paths) => {
    expect(pathsOf(chainProblems(definition))).toEqual(paths);
  });

  it('names the hop that dials, and the hop that ends TLS', () => {
    const [dialled] = chainProblems({ hops: [tcp('y'), tcp('z'), tls('a', '*.x.example')] });
    expect(dialled?.message).toContain('hops[1] dials this hop');
    const [behind] = chainProblems({ hops: [tcp('z'), tls('a', 'x'), tcp('b'), tcp('c', { server_names: ['x'] })] });
    expect([behind?.path, behind?.message]).toEqual([['hops', 3, 'server_names'], expect.stringContaining('hops[1]')]);
  });
});

describe('the definition of an L3 network', () => {
  const member = (node_id: string, ...addresses: readonly string[]) => ({ node_id, addresses });
  const tunnel = (listener_node_id: string, connector_node_id: string, fields: object = {}) => ({
    listener_node_id,
    connector_node_id,
    listen_addr: '0.0.0.0',
    listen_port: 443,
    ...fields,
  });
  const both = [member('a'), member('b')];

  it.each<[string, PartialNetwork, readonly string[]]>([
    ['that sends nothing has no problem', {}, []],
    ['that sends tunnels alone may have any ends', { tunnels: [tunnel('x', 'y')] }, []],
    [
      'that sends both has tunnels between members',
      { members: both, tunnels: [tunnel('a', 'y'), tunnel('x', 'b')] },
      ['tunnels.0.connector_node_id', 'tunnels.1.listener_node_id'],
    ],
    ['that sends members alone has no problem with tunnels', { members: both }, []],
    ['has each member once', { members: [...both, member('a')] }, ['members.2.node_id']],
    ['may leave out names of interfaces', { members: [{ ...member('a'), interface_name: undefined }] }, []],
    [
      'has names of interfaces that Linux takes',
      { members: [{ ...member('a'), interface_name: 'a/b' }] },
      ['members.0.interface_name'],
    ],
    ['has addresses', { members: [member('a', '10.0.0.1/8', 'nonsense')] }, ['members.0.addresses.1']],
    [
      'has addresses of hosts',
      { members: [member('a', '127.0.0.1/8', '::1/128', 'ff02::1/128', 'fd00::1/64')] },
      ['members.0.addresses.0', 'members.0.addresses.1', 'members.0.addresses.2'],
    ],
    [
      'may leave out context ids',
      { tunnels: [tunnel('a', 'b'), tunnel('a', 'b'), tunnel('a', 'c', { context_id: undefined })] },
      [],
    ],
    [
      'has each context id once',
      { tunnels: [tunnel('a', 'b', { context_id: 7 }), tunnel('a', 'b'), tunnel('b', 'a', { context_id: 7 })] },
      ['tunnels.2.context_id'],
    ],
    ['has tunnels between two nodes', { tunnels: [tunnel('a', 'a')] }, ['tunnels.0.connector_node_id']],
    [
      'has listeners that do not overlap',
      { tunnels: [tunnel('a', 'b'), tunnel('a', 'b', { listen_addr: '192.0.2.1' })] },
      ['tunnels.1.listen_addr'],
    ],
  ])('%s', (_, definition, paths) => {
    expect(pathsOf(networkProblems(definition))).toEqual(paths);
  });
});

describe('the definition of a route', () => {
  it('has each node once, and may leave its hops out', () => {
    expect([...routeProblems()]).toEqual([]);
    expect([...routeProblems([{ node_id: 'a' }, { node_id: 'b' }])]).toEqual([]);
    expect([...routeProblems([{ node_id: 'a' }, { node_id: 'a' }])]).toHaveLength(1);
  });
});

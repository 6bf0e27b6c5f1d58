/**
 * The fleets whose compiled output is recorded, as commands. Tests read the recorded logs, so a change here affects only the
 * next recording.
 */
import fc from 'fast-check';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import type { RecordedCommand } from '../../src/kernel/event.js';
import * as f from './fleet.js';
import { histories } from './fleet-histories.js';
import { logOf, play } from './fleet-play.js';
import * as l3 from './l3-networks.js';

const nodes = (...names: readonly string[]): readonly FleetCommand[] => names.map((name) => f.createNode(name));
const into = (upstream: string) => ({ target: { upstream_id: f.upstreamId(upstream) } });

const identities = [
  f.createX25519('front key'),
  f.createReality('front', 'front key', { server_names: ['one.example', 'two.example'], short_ids: ['0a1b', ''] }),
  f.createX25519('noise'),
  f.createTlsCert('leaf', f.rotatedTo('leaf', { subject_alt_names: ['*.leaf.example', 'leaf.example'] })),
];
const masked = { security: 'reality', credential_id: f.credentialId('front') } as const;
const quic = { ...masked, outer: 'quic' } as const;
const noise = { security: 'noise', credential_id: f.credentialId('noise') } as const;
const leaf = { security: 'tls', credential_id: f.credentialId('leaf') } as const;
const named = { ...leaf, server_names: ['*.named.example', 'named.example'] } as const;

type Step = FleetCommand | ((fleet: Fleet) => FleetCommand);

const fleets: { readonly [name: string]: readonly Step[] } = {
  'tcp-through-three-hops': [
    ...nodes('in', 'middle', 'out'),
    f.createUpstream('web', { server_names: ['web.example'], tls: f.upstreamTls }),
    f.createChain(
      'web',
      [f.hop('in', 443), f.hop('middle', 8443, { dial_addr: '2001:db8::5' }), f.hop('out', 8443)],
      into('web'),
    ),
    f.deployChain('web'),
    { type: 'ReportNodeAddress', id: f.nodeId('out'), public_ipv4: '203.0.113.4', public_ipv6: '2001:db8::4' },
    f.updateNode('out', { address: null }),
  ],
  'reported-addresses-that-nobody-dials': [
    f.createNode('in'),
    f.createNode('six', { address: null }),
    f.createNode('named'),
    { type: 'ReportNodeAddress', id: f.nodeId('six'), public_ipv4: '127.0.0.1', public_ipv6: '2001:db8::6' },
    { type: 'ReportNodeAddress', id: f.nodeId('named'), public_ipv4: '169.254.1.1', public_ipv6: '::1' },
    f.createChain('one', [f.hop('in', 80), f.hop('six', 80), f.hop('named', 80)]),
    f.deployChain('one'),
    f.updateNode('named', { address: '127.0.0.1' }),
  ],
  'udp-and-fake-tcp': [
    ...nodes('in', 'out'),
    f.createUpstream('dns', { endpoint: '[2001:db8::53]:53', health_check_interval_ms: 500 }),
    f.createChain(
      'dns',
      [f.udpHop('in', 53, { listen_addr: '::' }), f.udpHop('out', 5353, { outer: 'fake_tcp' })],
      into('dns'),
    ),
    f.createChain('voice', [f.udpHop('in', 5060)], { target: { endpoint: 'voice.example:5060' } }),
    f.deployChain('dns'),
    f.deployChain('voice'),
    f.updateUpstream('dns', { enabled: false }),
  ],
  'shared-listeners': [
    ...nodes('edge'),
    f.createUpstream('a'),
    f.createUpstream('b'),
    f.createChain('fallback', [f.hop('edge', 443)], into('a')),
    f.createChain('a', [f.hop('edge', 443, { server_names: ['a.example', '*.a.example'] })], into('a')),
    f.createChain('b', [f.hop('edge', 443, { server_names: ['b.example'] })], into('b')),
    f.createChain('v6', [f.hop('edge', 443, { listen_addr: 'fd00::1' })], {
      target: { endpoint: 'direct.example:443', tls: f.upstreamTls },
    }),
    ...['v6', 'b', 'a', 'fallback'].map((name) => f.deployChain(name)),
  ],
  routes: [
    ...nodes('edge', 'middle', 'out'),
    f.createNode('six', { address: null }),
    { type: 'ReportNodeAddress', id: f.nodeId('six'), public_ipv4: null, public_ipv6: '2001:db8::6' },
    f.createRoute('site', [f.routeHop('edge', 80), f.routeHop('middle', 8080, '10.0.0.1'), f.routeHop('six', 8081)], {
      backend: '[2001:db8::80]:80',
    }),
    f.createRoute('api', [f.routeHop('edge', 80)], {
      host: 'site.example',
      path_prefix: '/api',
      backend: 'api.example:80',
    }),
    f.createChain('named', [f.hop('edge', 80, { server_names: ['named.example'] })]),
    f.deployChain('named'),
    f.createRoute('off', [f.routeHop('out', 80)]),
    f.updateRoute('off', { enabled: false }),
    f.createRoute('gone', [f.routeHop('out', 81)]),
    f.deleteRoute('gone'),
  ],
  'listener-policies': [
    ...nodes('edge', 'other'),
    f.createChain('web', [f.hop('edge', 443)]),
    f.deployChain('web'),
    f.savePolicy('edge', 443, ['raw', 'tls']),
    f.savePolicy('edge', 443, ['noise'], { listen_addr: '10.0.0.10' }),
    f.savePolicy('edge', 443, ['tls'], { listen_addr: '10.0.0.9' }),
    f.savePolicy('edge', 80, ['raw']),
    f.savePolicy('edge', 53, [], { transport: 'udp', listen_addr: '::' }),
    f.savePolicy('edge', 80, ['tls', 'raw']),
    f.savePolicy('other', 80, ['raw']),
    f.deletePolicy('other', 80),
  ],
  'l3-networks': [
    ...nodes('hub', 'site'),
    f.createNode('phone', { address: null }),
    f.createNode('six', { address: null }),
    { type: 'ReportNodeAddress', id: f.nodeId('six'), public_ipv4: null, public_ipv6: '2001:db8::6' },
    ...l3.identity('identity', ['l3.example', 'other.example']),
    l3.createNetwork(
      'office',
      [
        l3.member('hub', ['10.0.0.1/24', 'fd00::1/64'], ['0.0.0.0/0', '::/0'], { features: ['gso', 'multi_queue'] }),
        l3.member('site', '10.0.0.2/24', ['192.168.7.0/24'], { interface_name: 'wan0' }),
        l3.member('phone', 'fd00::3/64'),
        l3.member('six', ['10.0.0.4/32', 'fd00::4/128'], ['fd08::/16', '10.8.0.0/16']),
      ],
      [
        l3.tunnel('hub', 'site'),
        l3.tunnel('hub', 'phone', { context_id: 2_147_483_647 }),
        l3.tunnel('six', 'hub', { listen_addr: 'fd01::6', listen_port: 8443 }),
        l3.tunnel('six', 'phone', { listen_addr: 'fd01::6', listen_port: 8443 }),
      ],
      { mtu: 9000 },
    ),
    l3.createNetwork(
      'lab',
      [l3.member('hub', '10.1.0.1/30'), l3.member('site', '10.1.0.2/30')],
      [l3.tunnel('hub', 'site')],
      {
        server_name: 'other.example',
      },
    ),
    f.createChain('dns', [f.udpHop('hub', 443)]),
    f.deployChain('dns'),
    l3.createNetwork(
      'off',
      [l3.member('six', '10.2.0.1/24'), l3.member('hub', '10.2.0.2/24')],
      [l3.tunnel('six', 'hub')],
    ),
    l3.updateNetwork('off', { enabled: false }),
    l3.createNetwork(
      'gone',
      [l3.member('site', '10.3.0.1/24'), l3.member('hub', '10.3.0.2/24')],
      [l3.tunnel('site', 'hub')],
    ),
    l3.deleteNetwork('gone'),
    l3.updateNetwork('lab', { name: 'laboratory', mtu: 1280 }),
    f.updateCredential('identity', { short_ids: ['ff00'], target_port: 8443 }),
  ],
  'tcp-over-every-transport': [
    ...nodes('in', 'middle', 'out'),
    ...identities,
    f.createUpstream('web', { server_names: ['web.example'], tls: f.upstreamTls }),
    f.createChain(
      'masked',
      [f.hop('in', 443, masked), f.hop('middle', 8443, { ...masked, outer: 'quic' }), f.hop('out', 8443, leaf)],
      into('web'),
    ),
    f.createChain('ended', [f.hop('in', 443, leaf), f.hop('out', 443, { ...masked, server_names: ['two.example'] })]),
    f.createChain('read', [f.hop('in', 443, { server_names: ['*.sni.example'] }), f.hop('middle', 443, named)]),
    f.createChain('rest', [f.hop('in', 443), f.hop('out', 444, { ...masked, outer: 'quic', max_streams: 7 })]),
    ...['masked', 'ended', 'read', 'rest'].map((name) => f.deployChain(name)),
    f.updateCredential('front', { server_names: ['new.example', 'two.example'], short_ids: ['', 'ab'] }),
  ],
  'udp-over-every-transport': [
    ...nodes('in', 'middle', 'out'),
    ...identities,
    f.createUpstream('dns'),
    f.createChain(
      'masked',
      [f.udpHop('in', 53, quic), f.udpHop('middle', 53, noise), f.udpHop('out', 53, { ...noise, outer: 'fake_tcp' })],
      { payload: 'udp', ...into('dns') },
    ),
    f.createChain('noise', [f.udpHop('in', 53, noise), f.udpHop('middle', 54, { outer: 'fake_tcp' })], into('dns')),
    f.createChain('raw', [f.udpHop('in', 53), f.udpHop('out', 443, { ...quic, max_streams: 1 })]),
    ...['masked', 'noise', 'raw'].map((name) => f.deployChain(name)),
    f.updateCredential('noise', f.x25519Keys('another')),
    f.updateCredential('front key', f.x25519Keys('yet another')),
  ],
  'keys-of-certificates-that-change': [
    ...nodes('a', 'b', 'c'),
    f.createTlsCert('during'),
    f.createTlsCert('after'),
    f.createTlsCert('renewed'),
    ...['during', 'after', 'renewed'].flatMap((name, index) => {
      const hop = { security: 'tls', credential_id: f.credentialId(name) } as const;
      return [f.createChain(name, [f.hop('a', 80 + index), f.hop('b', 80 + index, hop)]), f.deployChain(name)];
    }),
    f.updateCredential('during', f.rotatedTo('during 2', { subject_alt_names: ['*.b.example', 'b.example'] })),
    f.updateCredential('after', f.rotatedTo('after 2')),
    f.endOverlap('after'),
    f.updateCredential('renewed', f.rotatedTo('renewed', { serial_number: '02' })),
  ],
  'modified-disabled-raised': [
    ...nodes('a', 'b', 'c'),
    f.createChain('modified', [f.hop('a', 80), f.hop('b', 80)]),
    f.deployChain('modified'),
    f.updateChain('modified', { name: 'renamed', hops: [f.hop('c', 80)] }),
    f.createChain('off', [f.hop('c', 81)]),
    f.deployChain('off'),
    f.updateChain('off', { enabled: false }),
    f.settings({
      multiplex: true,
      multiplex_port: 9000,
      nodes: [
        { node_id: f.nodeId('b'), multiplex: true, multiplex_port: 9001 },
        { node_id: f.nodeId('c'), multiplex: false },
      ],
    }),
    { type: 'RaiseNodeGeneration', id: f.nodeId('b'), reported: 4_000_000_000 },
    { type: 'RaiseCompilerVersion', version: 1 },
    { type: 'RefreshNodeConfig', id: f.nodeId('c') },
  ],
};

/** Logs by the name of the fleet. */
export function goldenFleets(): ReadonlyMap<string, readonly RecordedCommand[]> {
  const logs = new Map<string, readonly RecordedCommand[]>();
  for (const [name, commands] of Object.entries(fleets)) {
    const { fleet } = f.given();
    logs.set(
      name,
      commands.map((step) => {
        const performed = f.perform(fleet, typeof step === 'function' ? step(fleet) : step);
        if (performed.kind !== 'written') throw new Error(`${name}: ${JSON.stringify(performed)}`);
        return performed.command;
      }),
    );
  }
  const [random = []] = fc
    .sample(
      fc.array(histories(120), { minLength: 1, maxLength: 1 }).map(([moves = []]) => moves),
      {
        seed: 20_250_101,
        numRuns: 40,
      },
    )
    .toSorted((a, b) => b.length - a.length);
  logs.set('random-history-over-every-transport', logOf(play(random).steps));
  return logs;
}

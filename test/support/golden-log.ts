/** A log with every event type that this release writes, in all streams: the source of a release's golden log. */
import type { AccountEvent } from '../../src/domain/accounts/declaration.js';
import type { SigninEvent } from '../../src/domain/accounts/signin.js';
import type { AgentEvent } from '../../src/domain/agents/facts.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { policyId, priorityLabels } from '../../src/domain/listener-policy/policy.js';
import type { LogHeadsRecorded } from '../../src/domain/log-chain/heads.js';
import type { ServiceEvent, KeyringWrapped } from '../../src/domain/service/identity.js';
import { schemaVersions } from '../../src/domain/log/upcast.js';
import {
  agentsStream,
  chainedStreams,
  streams,
  type RecordedCommand,
  type RecordedEvent,
} from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import type { JsonObject } from '../../src/kernel/json.js';
import * as f from './fleet.js';
import * as l3 from './l3-networks.js';
import { chainedLog, testMasterKey } from './log-chain.js';

const admin = uuidFromName('user admin');
const node = f.nodeId('in');
const remove = <T extends string>(type: T, id: string) => ({ type, id, ifMatch: undefined }) as const;
interface Restorable {
  readonly type: string;
  readonly id: string;
}

const realityOfNetworks = { credential_id: f.credentialId('reality'), server_name: 'a.example' };

const fleetCommands: readonly (FleetCommand | ((fleet: Fleet) => FleetCommand))[] = [
  { type: 'RaiseCompilerVersion', version: 1 },
  f.createNode('in', { labels: { site: 'north' }, psk: { fingerprint: 'print', verifier: f.sealed } }),
  f.createNode('out', { address: null, description: 'the far end' }),
  f.createNode('spare'),
  { type: 'ReportNodeAddress', id: f.nodeId('out'), public_ipv4: '203.0.113.4', public_ipv6: null },
  f.updateNode('in', { name: 'inlet', labels: { site: 'south', rack: '4' } }),
  f.createUpstream('web', { tls: f.upstreamTls, server_names: ['web.example'] }),
  f.createUpstream('old'),
  f.createChain('web', [f.hop('in', 443, { server_names: ['web.example'] }), f.hop('out', 8443)], {
    target: { upstream_id: f.upstreamId('web') },
  }),
  f.deployChain('web'),
  f.updateChain('web', { description: 'edited', target: { endpoint: '192.0.2.9:80' } }),
  f.createChain('dns', [f.udpHop('in', 53), f.udpHop('out', 53, { outer: 'fake_tcp', dial_addr: '198.51.100.53' })]),
  f.deployChain('dns'),
  f.updateChain('dns', { enabled: false }),
  f.createChain('gone', [f.hop('spare', 80)]),
  f.deployChain('gone'),
  f.createRoute('site', [f.routeHop('in', 8080), f.routeHop('spare', 8080)]),
  f.updateRoute('site', { hops: [f.routeHop('in', 8081)], backend: 'backend.example:8080' }),
  f.createRoute('closed', [f.routeHop('in', 8082)], { enabled: false }),
  f.createX25519('keys'),
  f.createReality('reality', 'keys'),
  f.createTlsCert('cert'),
  f.createTlsCert('spare cert'),
  f.updateCredential('reality', { server_names: ['a.example'], short_ids: ['', 'ab'] }),
  f.updateCredential('cert', f.rotatedTo('cert 2')),
  f.endOverlap('cert'),
  f.savePolicy('in', 443, ['tls']),
  f.savePolicy('in', 443, ['raw', 'tls']),
  f.savePolicy('in', 53, ['raw'], { transport: 'udp' }),
  f.savePolicy('spare', 80, []),
  f.savePolicy('in', 8080, ['raw']),
  f.deletePolicy('in', 8080),
  l3.createNetwork(
    'net',
    [
      l3.member('in', ['10.9.0.1/24', 'fd09::1/64'], ['0.0.0.0/0'], { features: ['gso'] }),
      l3.member('out', '10.9.0.2/24'),
    ],
    [l3.tunnel('in', 'out'), l3.tunnel('out', 'in', { listen_addr: '::', context_id: 9 })],
    realityOfNetworks,
  ),
  l3.updateNetwork('net', {
    mtu: 1400,
    tunnels: [l3.tunnel('in', 'out', { listen_port: 4430 }), l3.tunnel('in', 'out')],
  }),
  l3.createNetwork('gone net', [l3.member('in', '10.10.0.1/32')], [], { ...realityOfNetworks, enabled: false }),
  f.updateUpstream('web', { endpoint: 'web2.example:443', enabled: false }),
  f.settings({
    multiplex_port: 9000,
    heartbeat_interval_secs: 5,
    nodes: [{ node_id: f.nodeId('spare'), multiplex: true }],
  }),
  { type: 'RefreshNodeConfig', id: f.nodeId('out') },
  { type: 'RaiseNodeGeneration', id: node, reported: 77 },
  {
    type: 'QueueNodeCommand',
    id: node,
    command: 'RUN_DIAGNOSTICS',
    queued_at: '2026-01-01T00:00:00.000Z',
    expires_at: '2026-01-01T00:10:00.000Z',
  },
  { type: 'IssueNodePsk', id: f.nodeId('out'), fingerprint: 'second', verifier: f.sealed },
  remove('DeleteChain', f.chainId('gone')),
  remove('DeleteRoute', f.routeId('closed')),
  remove('DeleteCredential', f.credentialId('spare cert')),
  l3.deleteNetwork('gone net'),
  remove('DeleteNode', f.nodeId('spare')),
  remove('DeleteUpstream', f.upstreamId('old')),
  { type: 'RaiseCompilerVersion', version: 2 },
  { type: 'LowerCompilerVersion', version: 1 },
  ...undone(),
];

/** What reverts write: the deletes of above are taken back, and a deploy. */
function undone(): readonly FleetCommand[] {
  const former = { created_at: '2026-01-01T00:00:00.000Z', version: 7 };
  const definition = { payload: 'tcp', hops: [f.hop('spare', 80)], target: { endpoint: '192.0.2.9:80' } } as const;
  const policy = { node_id: node, transport: 'tcp', listen_addr: '0.0.0.0', listen_port: 8080 } as const;
  const deployed = { ...definition, chain_version: 1, at: former.created_at, deployment_id: 'deploy' };
  const override = { multiplex: true, multiplex_port: null };
  const spare = { transport: 'tcp', listen_addr: '0.0.0.0', listen_port: 80, priority_order: priorityLabels } as const;
  const restore = <C extends { readonly type: string; readonly id: string }>(
    { type: _, ...fields }: C,
    noun: string,
  ): FleetCommand => ({ ...fields, type: `Restore${noun}`, former }) as unknown as FleetCommand;
  return [
    restore({ ...f.createNode('spare'), override, policies: [spare], generation_offset: 3 }, 'Node'),
    restore(f.createUpstream('old') as Restorable, 'Upstream'),
    restore({ ...(f.createChain('gone', []) as Restorable), ...definition, deployed }, 'Chain'),
    restore(f.createRoute('closed', [f.routeHop('in', 8082)], { enabled: false }) as Restorable, 'Route'),
    restore(f.createTlsCert('spare cert') as Restorable, 'Credential'),
    restore({ type: '', id: policyId(policy), ...policy, priority_order: priorityLabels }, 'ListenerPolicy'),
    restore(
      {
        type: '',
        id: l3.networkId('gone net'),
        name: 'gone net',
        enabled: false,
        network_id: 40,
        mtu: 1380,
        ...realityOfNetworks,
        members: [{ ...l3.member('in', '10.10.0.1/32'), interface_name: 'svc40' }],
        tunnels: [],
      },
      'L3Network',
    ),
    { type: 'RollBackChain', id: f.chainId('gone'), definition: null },
  ];
}

type OtherEvent = AccountEvent | ServiceEvent | KeyringWrapped | LogHeadsRecorded | AgentEvent | SigninEvent;

const stamp = { generation: 12, checksum: 'ab'.repeat(32) };
const failure = {
  resource_type: 'l4_chain',
  resource_id: f.chainId('web'),
  path: 'tcp_proxy_rules[0]',
  message: 'port in use',
};
const others: readonly (readonly [stream: string, event: OtherEvent])[] = [
  [
    streams.service,
    {
      type: 'ServiceIdentityCreated',
      data: {
        installation_id: uuidFromName('installation'),
        static_public: 'c3RhdGlj',
        static_private: f.sealed,
        signing_public: 'c2lnbg',
        signing_private: f.sealed,
      },
    },
  ],
  [
    streams.keyring,
    {
      type: 'KeyringWrapped',
      data: {
        installation_id: uuidFromName('installation'),
        version: 1,
        master_key_id: testMasterKey(8).keyId,
        nonce: 'bm9uY2U',
        ct: 'Y3Q',
      },
    },
  ],
  [
    streams.service,
    {
      type: 'KeyringRecorded',
      data: { installation_id: uuidFromName('installation'), version: 1, digest: 'cd'.repeat(32) },
    },
  ],
  [
    streams.service,
    {
      type: 'TokenSigningKeyReplaced',
      data: { installation_id: uuidFromName('installation'), signing_public: 'bmV3', signing_private: f.sealed },
    },
  ],
  [
    streams.service,
    { type: 'LogHeadsRecorded', data: { heads: [{ stream: streams.fleet, revision: 0, mac: 'A'.repeat(43) }] } },
  ],
  [
    streams.accounts,
    {
      type: 'UserCreated',
      data: { user_id: admin, username: 'admin', role: 'admin', display_name: null, email: null, password: f.sealed },
    },
  ],
  [
    streams.accounts,
    { type: 'UserProfileUpdated', data: { user_id: admin, changes: { email: { from: null, to: f.sealed } } } },
  ],
  [streams.accounts, { type: 'UserPasswordChanged', data: { user_id: admin, password: { ...f.sealed, ct: 'bmV3' } } }],
  [
    streams.accounts,
    { type: 'SignedOut', data: { user_id: admin, username: 'admin', token_id: uuidFromName('token') } },
  ],
  [
    agentsStream(node),
    {
      type: 'AgentSessionOpened',
      data: {
        node_id: node,
        session_id: 'cd'.repeat(16),
        instance_id: uuidFromName('instance'),
        agent_version: '1.0.0',
        public_ipv4: '203.0.113.4',
        public_ipv6: '',
        detected_addresses: ['10.0.0.4'],
        multiplex: false,
        multiplex_port: 0,
      },
    },
  ],
  [agentsStream(node), { type: 'AgentConfigApplied', data: { node_id: node, ...stamp, duration_ms: 12 } }],
  [agentsStream(node), { type: 'AgentConfigRejected', data: { node_id: node, ...stamp, errors: [failure] } }],
  [agentsStream(node), { type: 'AgentVersionConflict', data: { node_id: node, reported: '9007199254740993' } }],
  [agentsStream(node), { type: 'AgentDuplicateSeen', data: { node_id: node, until: '2025-01-01T02:00:00.000Z' } }],
  [streams.signins, { type: 'SignedIn', data: { user_id: admin, username: 'admin', address: '192.0.2.7' } }],
  [streams.signins, { type: 'SignInRefused', data: { user_id: null, username: null, address: '192.0.2.8' } }],
];

/** Every event, in log order, streams one after the other. */
export function goldenLog(): readonly RecordedEvent[] {
  const { fleet } = f.given();
  const commands = fleetCommands.map((step): RecordedCommand => {
    const command = typeof step === 'function' ? step(fleet) : step;
    const performed = f.perform(fleet, command);
    if (performed.kind !== 'written') throw new Error(`${command.type}: ${JSON.stringify(performed)}`);
    return performed.command;
  });
  const revisions = new Map<string, number>();
  const rest = others.map(([stream, { type, data }], index): RecordedEvent => {
    const revision = (revisions.get(stream) ?? -1) + 1;
    revisions.set(stream, revision);
    return {
      id: uuidFromName(`other event ${index}`),
      stream,
      type,
      data: data as unknown as JsonObject,
      revision,
      position: 0,
      metadata: {
        command: { id: uuidFromName(`other command ${index}`), index: 0, count: 1 },
        actor: { type: 'system', id: 'test', name: 'test' },
        request_id: 'test',
        occurred_at: new Date(Date.UTC(2025, 0, 1, 1, 0, index)).toISOString(),
        schema_version: schemaVersions[type],
      },
    };
  });
  const of = (stream: string): readonly RecordedCommand[] =>
    rest.flatMap((event) => (event.stream === stream ? { stream, events: [event] as const } : []));
  const chained = [commands, of(streams.accounts), of(streams.service)].flatMap((own) => chainedLog(own));
  const unchained = rest.filter(({ stream }) => !chainedStreams.includes(stream));
  return [...chained.flatMap(({ events }) => events), ...unchained].map((event, index) => ({
    ...event,
    position: 100 * (index + 1),
  }));
}

/**
 * Every row of the transport table (`docs/contract/domain.md#l4-chain`) as entry hop, as dialled hop and as last hop:
 * compiled, encoded, and compared with messages written by hand from `docs/contract/wire.md#configuration`.
 */
import { describe, expect, it } from 'vitest';
import { encodeSnapshot } from '../../src/delivery/encode.js';
import { snapshotToJson } from '../../src/delivery/snapshot-json.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { Hop, Payload } from '../../src/domain/chain/chain.js';
import type { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import type { GatewayConfig } from '../../src/gen/svc/control/v1/gateway.js';
import { TcpProxyMode, UdpMode } from '../../src/gen/svc/control/v1/rules.js';
import { OuterTransport, PayloadProtocol, SecurityLayer } from '../../src/gen/svc/control/v1/transport.js';
import { decoded } from '../support/delivery-fixture.js';
import * as f from '../support/fleet.js';

/** The bytes that a node's agent gets, as it reads them. */
function sent(fleet: f.Scenario['fleet'], node: string): RuntimeConfigSnapshot {
  const snapshot = compileNode(fleet, f.nodeId(node));
  const push = encodeSnapshot(snapshot, ({ secret, stream, resource_id, field }) => {
    expect([stream, field]).toEqual(['svc-fleet', 'private_key']);
    expect(fleet.has('credential', resource_id)).toBe(true);
    return Buffer.from(`secret ${secret.key_id}`);
  });
  return decoded(push);
}

const none = Buffer.alloc(0);
const secret = (text: string): Buffer => Buffer.from(`secret ${text}`);

const credentials = [
  f.createX25519('masked key'),
  f.createReality('masked', 'masked key', { server_names: ['one.example', 'two.example'], short_ids: ['0a1b', ''] }),
  f.createX25519('noise'),
  f.createTlsCert('leaf', f.rotatedTo('leaf', { subject_alt_names: ['*.wild.example', 'leaf.example'] })),
];
const inbound = {
  privateKey: secret('key of masked key'),
  serverNames: ['one.example', 'two.example'],
  shortIds: ['0a1b', ''],
  targetHost: 'target.example',
  targetPort: 443,
};
const outbound = {
  publicKey: Buffer.from(f.publicKey('masked key'), 'base64url'),
  serverName: 'one.example',
  shortId: '0a1b',
};

const tcpRule = {
  mode: TcpProxyMode.RAW,
  serverNames: [] as string[],
  reality: undefined as typeof inbound | undefined,
  tlsCredentialId: '',
};
const udpRule = { mode: UdpMode.RAW, noisePrivateKey: none, noisePublicKey: none };
const certificates = [
  {
    credentialId: f.credentialId('leaf'),
    certificatePem: 'PEM of leaf',
    privateKeyPem: 'secret key of leaf',
    serverNames: ['*.wild.example', 'leaf.example'],
  },
];

interface Row {
  readonly row: string;
  readonly payload: Payload;
  readonly hop: Partial<Hop>;
  readonly list: 'tcpProxyRules' | 'udpRules' | 'quicRules';
  readonly profile: readonly [PayloadProtocol, OuterTransport, SecurityLayer];
  /** The listening side, beside what every rule has. */
  readonly rule: object;
  readonly certificates?: typeof certificates;
  /** How the hop before dials it, where that is not plain. */
  readonly dialled?: object;
  readonly pins?: readonly string[];
}

const { TCP, UDP } = PayloadProtocol;
const { RAW, TLS, REALITY, NOISE } = SecurityLayer;
const outer = OuterTransport;

const rows: readonly Row[] = [
  {
    row: 'tcp over tcp, raw',
    payload: 'tcp',
    hop: { outer: 'tcp', security: 'raw' },
    list: 'tcpProxyRules',
    profile: [TCP, outer.TCP, RAW],
    rule: tcpRule,
  },
  {
    row: 'tcp over tcp, raw with SNI pre-read',
    payload: 'tcp',
    hop: { outer: 'tcp', security: 'raw', server_names: ['*.any.example', 'sni.example'] },
    list: 'tcpProxyRules',
    profile: [TCP, outer.TCP, RAW],
    rule: { ...tcpRule, serverNames: ['*.any.example', 'sni.example'] },
  },
  {
    row: 'tcp over tcp, tls',
    payload: 'tcp',
    hop: { outer: 'tcp', security: 'tls', credential_id: f.credentialId('leaf') },
    list: 'tcpProxyRules',
    profile: [TCP, outer.TCP, TLS],
    rule: {
      ...tcpRule,
      mode: TcpProxyMode.TLS,
      serverNames: ['*.wild.example', 'leaf.example'],
      tlsCredentialId: f.credentialId('leaf'),
    },
    certificates,
    dialled: { tls: true, tlsServerName: 'leaf.example' },
    pins: [f.pin('leaf')],
  },
  {
    row: 'tcp over tcp, reality',
    payload: 'tcp',
    hop: { outer: 'tcp', security: 'reality', credential_id: f.credentialId('masked') },
    list: 'tcpProxyRules',
    profile: [TCP, outer.TCP, REALITY],
    rule: {
      ...tcpRule,
      mode: TcpProxyMode.REALITY,
      serverNames: ['one.example', 'two.example'],
      reality: inbound,
    },
    dialled: { reality: outbound },
  },
  {
    row: 'tcp over quic, reality: streams',
    payload: 'tcp',
    hop: { outer: 'quic', security: 'reality', credential_id: f.credentialId('masked') },
    list: 'quicRules',
    profile: [TCP, outer.QUIC, REALITY],
    rule: { reality: inbound, maxStreamsPerConnection: 100 },
    dialled: { quicReality: outbound },
  },
  {
    row: 'udp over quic, reality: DATAGRAM',
    payload: 'udp',
    hop: { outer: 'quic', security: 'reality', credential_id: f.credentialId('masked'), max_streams: 7 },
    list: 'quicRules',
    profile: [UDP, outer.QUIC, REALITY],
    rule: { reality: inbound, maxStreamsPerConnection: 7 },
    dialled: { quicReality: outbound },
  },
  {
    row: 'udp over udp, raw',
    payload: 'udp',
    hop: { outer: 'udp', security: 'raw' },
    list: 'udpRules',
    profile: [UDP, outer.UDP, RAW],
    rule: udpRule,
  },
  {
    row: 'udp over udp, noise',
    payload: 'udp',
    hop: { outer: 'udp', security: 'noise', credential_id: f.credentialId('noise') },
    list: 'udpRules',
    profile: [UDP, outer.UDP, NOISE],
    rule: {
      mode: UdpMode.ENC,
      noisePrivateKey: secret('key of noise'),
      noisePublicKey: Buffer.from(f.publicKey('noise'), 'base64url'),
    },
    dialled: { noisePublicKey: Buffer.from(f.publicKey('noise'), 'base64url') },
  },
  {
    row: 'udp over fake_tcp, raw',
    payload: 'udp',
    hop: { outer: 'fake_tcp', security: 'raw' },
    list: 'udpRules',
    profile: [UDP, outer.FAKE_TCP, RAW],
    rule: udpRule,
  },
  {
    row: 'udp over fake_tcp, noise',
    payload: 'udp',
    hop: { outer: 'fake_tcp', security: 'noise', credential_id: f.credentialId('noise') },
    list: 'udpRules',
    profile: [UDP, outer.FAKE_TCP, NOISE],
    rule: {
      mode: UdpMode.ENC,
      noisePrivateKey: secret('key of noise'),
      noisePublicKey: Buffer.from(f.publicKey('noise'), 'base64url'),
    },
    dialled: { noisePublicKey: Buffer.from(f.publicKey('noise'), 'base64url') },
  },
];

const nodes = ['entry', 'middle', 'last'];
const ports = [4000, 4001, 4002];

function deployed({ payload, hop }: Row) {
  const tls = payload === 'tcp' ? f.upstreamTls : null;
  return f.given(
    ...nodes.map((name) => f.createNode(name)),
    ...credentials,
    f.createUpstream('up', { tls, health_check_interval_ms: 5000 }),
    f.createChain(
      'one',
      nodes.map((name, index) => f.hop(name, ports[index]!, hop)),
      { payload, target: { upstream_id: f.upstreamId('up') } },
    ),
    f.deployChain('one'),
  ).fleet;
}

const plain = {
  reality: undefined,
  quicReality: undefined,
  tls: false,
  tlsServerName: '',
  noisePublicKey: none,
};

/** The gateway's part of the message for the hop at an index. */
function expectedGateway({ payload, list, profile, rule, dialled, pins, certificates: own }: Row, index: number) {
  const [payloadOf, outerOf, security] = profile;
  const transportProfile = { payload: payloadOf, outer: outerOf, security };
  const tcp = payload === 'tcp';
  const toNext = {
    next: { $case: 'endpoint', value: `${nodes[index + 1]}.example:${ports[index + 1]}` },
    transportProfile,
    ...plain,
    ...dialled,
  };
  const toUpstream = {
    next: { $case: 'upstreamCluster', value: f.upstreamId('up') },
    transportProfile: {
      payload: payloadOf,
      outer: tcp ? outer.TCP : outer.UDP,
      security: tcp ? TLS : RAW,
    },
    ...plain,
    ...(tcp ? { tls: true, tlsServerName: 'up.example' } : {}),
  };
  const last = index === 2;
  const pinsOf = last ? (tcp ? f.upstreamTls.spki_pins_sha256 : []) : (pins ?? []);
  const whole = {
    ruleId: `${f.chainId('one')}/${index}`,
    origin: { resourceType: 'l4_chain', resourceId: f.chainId('one'), resourceName: 'one', hopIndex: index },
    listenAddr: '0.0.0.0',
    listenPort: ports[index],
    transportProfile,
    outbound: last ? toUpstream : toNext,
    ...rule,
    ...(list === 'udpRules' ? {} : { upstreamTlsSpkiPinsSha256: pinsOf }),
  };
  const cluster = {
    name: f.upstreamId('up'),
    endpoints: ['up.example:443'],
    serverNames: [],
    enabled: true,
    healthCheck: { intervalMs: 5000, path: '' },
  };
  const empty: GatewayConfig = {
    upstreamClusters: [],
    tcpProxyRules: [],
    httpProxyRules: [],
    tls: undefined,
    quicRules: [],
    udpRules: [],
    listenerPolicies: [],
  };
  return {
    ...empty,
    [list]: [whole],
    upstreamClusters: last ? [cluster] : [],
    tls: own === undefined ? undefined : { certificates: own },
  };
}

describe.each(rows)('$row', (row) => {
  it.each([
    ['entry hop', 0],
    ['dialled hop', 1],
    ['last hop', 2],
  ] as const)('as %s', (_, index) => {
    const message = sent(deployed(row), nodes[index]!);
    expect(message.gateway).toEqual(expectedGateway(row, index));
    expect(message.l3).toEqual({ rules: [] });
  });

  it('shows no secret to operators', () => {
    const fleet = deployed(row);
    for (const node of nodes) {
      const shown = JSON.stringify(snapshotToJson(compileNode(fleet, f.nodeId(node)), none));
      const keys = [inbound.privateKey, secret('key of noise'), secret('key of leaf')];
      for (const key of keys) {
        for (const form of ['utf8', 'base64', 'base64url', 'hex'] as const) {
          expect(shown).not.toContain(key.toString(form).replace(/=+$/, ''));
        }
      }
    }
  });
});

describe('a hop with names of its own', () => {
  const names = { server_names: ['two.example'] };
  const masked = { security: 'reality', credential_id: f.credentialId('masked') } as const;
  const leaf = { security: 'tls', credential_id: f.credentialId('leaf') } as const;
  const world = (hop: Partial<Hop>): f.Scenario =>
    f.given(
      f.createNode('a'),
      f.createNode('b'),
      ...credentials,
      f.createChain('one', [f.hop('a', 80, hop), f.hop('b', 80, hop)], { payload: 'tcp' }),
      f.deployChain('one'),
    );

  it('listens with them and is dialled by the first exact one: REALITY', () => {
    const rule = sent(world({ ...masked, ...names }).fleet, 'a').gateway?.tcpProxyRules[0];
    expect(rule).toMatchObject({
      serverNames: ['two.example'],
      reality: { serverNames: ['two.example'] },
      outbound: { reality: { serverName: 'two.example' } },
    });
  });

  it('listens with them and is dialled by the first exact one: QUIC', () => {
    const rule = sent(world({ ...masked, ...names, outer: 'quic' }).fleet, 'a').gateway?.quicRules[0];
    expect(rule).toMatchObject({
      reality: { serverNames: ['two.example'] },
      outbound: { reality: undefined, quicReality: { serverName: 'two.example' } },
    });
  });

  it('listens with them, and its certificate keeps the names that it has: TLS', () => {
    const { gateway } = sent(world({ ...leaf, server_names: ['*.b.example', 'x.example', 'y.example'] }).fleet, 'a');
    expect(gateway?.tcpProxyRules[0]).toMatchObject({
      serverNames: ['*.b.example', 'x.example', 'y.example'],
      outbound: { tls: true, tlsServerName: 'x.example' },
    });
    expect(gateway?.tls).toEqual({ certificates });
  });
});

describe('a snapshot', () => {
  it('has a certificate once, however many hops use it, in the order of the ids', () => {
    const tls = (credential: string, name: string) =>
      ({ security: 'tls', credential_id: f.credentialId(credential), server_names: [name] }) as const;
    const { fleet } = f.given(
      f.createNode('a'),
      f.createTlsCert('x', f.rotatedTo('x', { subject_alt_names: ['x.example'] })),
      f.createTlsCert('y', f.rotatedTo('y', { subject_alt_names: ['y.example'] })),
      f.createChain('one', [f.hop('a', 80, tls('x', 'one.example'))]),
      f.createChain('two', [f.hop('a', 80, tls('y', 'two.example'))]),
      f.createChain('three', [f.hop('a', 80, tls('x', 'three.example'))]),
      ...['one', 'two', 'three'].map((name) => f.deployChain(name)),
    );
    const { gateway } = sent(fleet, 'a');
    expect(gateway?.tcpProxyRules).toHaveLength(3);
    const ids = ['x', 'y'].map(f.credentialId).sort();
    expect(gateway?.tls?.certificates.map(({ credentialId }) => credentialId)).toEqual(ids);
  });

  it('has no certificate of a hop that it only dials', () => {
    const leaf = { security: 'tls', credential_id: f.credentialId('leaf') } as const;
    const { fleet } = f.given(
      f.createNode('a'),
      f.createNode('b'),
      ...credentials,
      f.createChain('one', [f.hop('a', 80), f.hop('b', 80, leaf)]),
      f.deployChain('one'),
    );
    const { gateway } = sent(fleet, 'a');
    expect(gateway?.tls).toBeUndefined();
    expect(gateway?.tcpProxyRules).toMatchObject([
      { mode: TcpProxyMode.RAW, outbound: { tls: true }, upstreamTlsSpkiPinsSha256: [f.pin('leaf')] },
    ]);
  });

  it('may change the transport from hop to hop', () => {
    const { fleet } = f.given(
      f.createNode('a'),
      f.createNode('b'),
      f.createNode('c'),
      ...credentials,
      f.createChain(
        'one',
        [
          f.hop('a', 443, { outer: 'quic', security: 'reality', credential_id: f.credentialId('masked') }),
          f.udpHop('b', 53, { outer: 'fake_tcp', security: 'noise', credential_id: f.credentialId('noise') }),
          f.udpHop('c', 53),
        ],
        { payload: 'udp' },
      ),
      f.deployChain('one'),
    );
    const profile = (one: OuterTransport, security: SecurityLayer) => ({ payload: UDP, outer: one, security });
    expect(sent(fleet, 'a').gateway?.quicRules).toMatchObject([
      {
        transportProfile: profile(outer.QUIC, REALITY),
        outbound: {
          transportProfile: profile(outer.FAKE_TCP, NOISE),
          noisePublicKey: Buffer.from(f.publicKey('noise'), 'base64url'),
        },
        upstreamTlsSpkiPinsSha256: [],
      },
    ]);
    expect(sent(fleet, 'b').gateway?.udpRules).toMatchObject([
      {
        mode: UdpMode.ENC,
        transportProfile: profile(outer.FAKE_TCP, NOISE),
        outbound: { transportProfile: profile(outer.UDP, RAW), noisePublicKey: none },
      },
    ]);
    expect(sent(fleet, 'c').gateway?.udpRules).toMatchObject([{ mode: UdpMode.RAW }]);
  });
});

describe('a chain that ends in a REALITY server', () => {
  const server = { public_key: f.publicKey('r'), server_name: 'r.example', short_id: 'a1' };
  const dialled = {
    publicKey: Buffer.from(server.public_key, 'base64url'),
    serverName: server.server_name,
    shortId: 'a1',
  };

  it.each([
    ['tcp', 'tcp', f.hop('a', 80), 'tcpProxyRules'],
    ['tcp', 'quic', f.hop('a', 80), 'tcpProxyRules'],
    ['udp', 'quic', f.udpHop('a', 80), 'udpRules'],
  ] as const)('dials it from a %s chain over %s, be it an upstream or an endpoint', (payload, over, hop, list) => {
    const reality = { outer: over, ...server };
    const ends = [{ upstream_id: f.upstreamId('up') }, { endpoint: 'up.example:443', reality }];
    for (const target of ends) {
      const { fleet } = f.given(
        f.createNode('a'),
        f.createUpstream('up', { reality }),
        f.createChain('one', [hop], { payload, target }),
        f.deployChain('one'),
      );
      expect(sent(fleet, 'a').gateway?.[list][0]?.outbound).toMatchObject({
        transportProfile: { outer: over === 'tcp' ? outer.TCP : outer.QUIC, security: REALITY },
        tls: false,
        ...(over === 'tcp'
          ? { reality: dialled, quicReality: undefined }
          : { reality: undefined, quicReality: dialled }),
      });
    }
  });
});

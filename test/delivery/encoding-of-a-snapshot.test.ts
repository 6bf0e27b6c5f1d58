/** A snapshot's bytes: what a decoder reads from them, their checksum, and that they never change unnoticed. */
import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { encodeSnapshot } from '../../src/delivery/encode.js';
import { openerOf } from '../../src/delivery/secrets.js';
import { snapshotToJson } from '../../src/delivery/snapshot-json.js';
import type { NodeSnapshot } from '../../src/domain/snapshot/snapshot.js';
import { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { ServicePayload } from '../../src/gen/svc/control/v1/session.js';
import type { Keyring } from '../../src/security/keyring.js';
import { decoded } from '../support/delivery-fixture.js';
import { noSecrets } from '../support/every-kind-of-rule.js';
import { testKeyring } from '../support/keyring.js';

const profile = { payload: 'TCP', outer: 'TCP', security: 'RAW' } as const;
const origin = { resource_type: 'l4_chain', resource_id: 'chain-1', resource_name: 'Edge', hop_index: 1 } as const;

const noKeys = { reality: null, quic_reality: null, noise_public_key: null } as const;
const nothingElse = {
  http_proxy_rules: [],
  tls_certificates: [],
  quic_rules: [],
  listener_policies: [],
  l3_rules: [],
} as const;

const plain: NodeSnapshot = {
  ...nothingElse,
  node_id: 'node-1',
  generation: 42,
  upstream_clusters: [
    {
      name: 'up-1',
      endpoints: ['[2001:db8::1]:443'],
      server_names: ['a.example'],
      enabled: false,
      health_check_interval_ms: 10_000,
    },
  ],
  tcp_proxy_rules: [
    {
      rule_id: 'chain-1/1',
      origin,
      listen_addr: '0.0.0.0',
      listen_port: 443,
      transport_profile: profile,
      mode: 'RAW',
      server_names: ['b.example'],
      reality: null,
      tls_credential_id: '',
      upstream_tls_spki_pins_sha256: ['AAAA'],
      outbound: {
        next: { kind: 'upstream_cluster', name: 'up-1' },
        transport_profile: profile,
        ...noKeys,
        tls: true,
        tls_server_name: 'a.example',
      },
    },
  ],
  udp_rules: [],
  node: { multiplex: true, multiplex_port: 8443 },
};

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

async function withSecret(): Promise<{
  snapshot: NodeSnapshot;
  key: Buffer;
  keyring: Keyring;
}> {
  const keyring = testKeyring();
  const key = randomBytes(32);
  const secret = await keyring.seal(key, { stream: 'svc-fleet', resourceId: 'cred-1', field: 'private_key' });
  const udp = { payload: 'UDP', outer: 'UDP', security: 'NOISE' } as const;
  return {
    keyring,
    key,
    snapshot: {
      ...plain,
      udp_rules: [
        {
          rule_id: 'chain-2/0',
          origin,
          listen_addr: '0.0.0.0',
          listen_port: 53,
          transport_profile: udp,
          mode: 'ENC',
          noise_private_key: { secret, stream: 'svc-fleet', resource_id: 'cred-1', field: 'private_key' },
          noise_public_key: null,
          outbound: {
            next: { kind: 'endpoint', endpoint: '192.0.2.1:53' },
            transport_profile: udp,
            ...noKeys,
            tls: false,
            tls_server_name: '',
          },
        },
      ],
    },
  };
}

describe('the encoded snapshot', () => {
  it('is not spoiled by a snapshot before it that could not be encoded', () => {
    const before = sha256(encodeSnapshot(plain, noSecrets).payload);
    const [rule] = plain.tcp_proxy_rules;
    if (rule === undefined) throw new Error('the snapshot has no rule');
    const broken = { ...plain, tcp_proxy_rules: [{ ...rule, listen_port: 2 ** 40 }] };
    expect(() => encodeSnapshot(broken, noSecrets)).toThrow();
    expect(sha256(encodeSnapshot(plain, noSecrets).payload)).toBe(before);
  });

  it('has the same bytes as the generated code gives for the whole message', () => {
    const push = encodeSnapshot(plain, noSecrets);
    const whole = ServicePayload.encode(ServicePayload.decode(push.payload)).finish();
    expect(Buffer.from(push.payload).equals(Buffer.from(whole))).toBe(true);
  });

  it('has the SHA-256 of its encoding without the checksum as its checksum', () => {
    const push = encodeSnapshot(plain, noSecrets);
    const without = RuntimeConfigSnapshot.encode({ ...decoded(push), checksum: Buffer.alloc(0) }).finish();
    expect(Buffer.from(push.checksum)).toEqual(createHash('sha256').update(without).digest());
    expect(decoded(push).checksum).toEqual(Buffer.from(push.checksum));
  });

  it('carries every field', () => {
    const snapshot = decoded(encodeSnapshot(plain, noSecrets));
    expect(snapshot).toMatchObject({
      nodeId: 'node-1',
      generation: 42n,
      node: { multiplex: true, multiplexPort: 8443 },
    });
    expect(snapshot.gateway?.upstreamClusters).toEqual([
      {
        name: 'up-1',
        endpoints: ['[2001:db8::1]:443'],
        serverNames: ['a.example'],
        enabled: false,
        healthCheck: { intervalMs: 10_000, path: '' },
      },
    ]);
    expect(snapshot.gateway?.tcpProxyRules[0]).toMatchObject({
      ruleId: 'chain-1/1',
      origin: { resourceType: 'l4_chain', resourceId: 'chain-1', resourceName: 'Edge', hopIndex: 1 },
      listenAddr: '0.0.0.0',
      listenPort: 443,
      mode: 1,
      transportProfile: { payload: 1, outer: 1, security: 1 },
      serverNames: ['b.example'],
      upstreamTlsSpkiPinsSha256: ['AAAA'],
      outbound: { next: { $case: 'upstreamCluster', value: 'up-1' }, tls: true, tlsServerName: 'a.example' },
    });
    expect(snapshot.l3).toEqual({ rules: [] });
  });

  it('changes only together with the compiler version', () => {
    // If this fails, the output has changed: raise compilerVersion, then write the new value here.
    expect(Buffer.from(encodeSnapshot(plain, noSecrets).checksum).toString('hex')).toBe(
      '32316571c28c354b61dae2fdca484d2c59e7b78f4489df8c12343fe8da1feb00',
    );
  });
});

describe('a secret', () => {
  it('is opened for the agent', async () => {
    const { snapshot, key, keyring } = await withSecret();
    const push = encodeSnapshot(snapshot, openerOf(keyring));
    expect(decoded(push).gateway?.udpRules[0]?.noisePrivateKey).toEqual(key);
  });

  it('is named by its place in the error when its key is not in the keyring', async () => {
    const { snapshot } = await withSecret();
    expect(() => encodeSnapshot(snapshot, openerOf(testKeyring(8)))).toThrow(
      'the secret private_key of cred-1 cannot be opened: unknown_key',
    );
  });

  it('is masked in the snapshot JSON, which has the names and numbers of proto3 JSON', async () => {
    const { snapshot, key } = await withSecret();
    const json = JSON.parse(JSON.stringify(snapshotToJson(snapshot, Buffer.alloc(32, 1))));
    expect(json).toMatchObject({
      node_id: 'node-1',
      generation: '42',
      checksum: Buffer.alloc(32, 1).toString('base64'),
      gateway: {
        tcp_proxy_rules: [
          {
            mode: 'TCP_PROXY_MODE_RAW',
            transport_profile: { security: 'SECURITY_LAYER_RAW' },
            outbound: { upstream_cluster: 'up-1' },
          },
        ],
        udp_rules: [{ mode: 'UDP_MODE_ENC', noise_private_key: '***', outbound: { endpoint: '192.0.2.1:53' } }],
      },
    });
    expect(JSON.stringify(json)).not.toContain(key.toString('base64'));
    expect(JSON.stringify(json)).not.toContain(snapshot.udp_rules[0]!.noise_private_key!.secret.ct);
  });
});

/** A snapshot's bytes: what a decoder reads from them, their checksum, and that they never change unnoticed. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { encodeSnapshot } from '../../src/delivery/encode.js';
import type { NodeSnapshot } from '../../src/domain/snapshot/snapshot.js';
import { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { ServicePayload } from '../../src/gen/svc/control/v1/session.js';
import { decoded } from '../support/delivery-fixture.js';
import { noSecrets } from '../support/every-kind-of-rule.js';

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

/** A node's snapshot as operators see it: every field of every kind of rule, no secret, and which generation is shown. */
import { describe, expect, it } from 'vitest';
import { encodeSnapshot } from '../../src/delivery/encode.js';
import { openerOf } from '../../src/delivery/secrets.js';
import { createSnapshotJson, snapshotToJson, type SnapshotJsonDeps } from '../../src/delivery/snapshot-json.js';
import type { NodeSnapshot, SecretPlaceholder } from '../../src/domain/snapshot/snapshot.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { streams } from '../../src/kernel/event.js';
import {
  cluster,
  dialled,
  empty,
  head,
  policy,
  publicKey,
  reality,
  tunnel,
  whole,
} from '../support/every-kind-of-rule.js';
import * as f from '../support/fleet.js';
import { testKeyring } from '../support/keyring.js';

const shownProfile = (payload: string, outer: string, security: string) => ({
  payload: `PAYLOAD_PROTOCOL_${payload}`,
  outer: `OUTER_TRANSPORT_${outer}`,
  security: `SECURITY_LAYER_${security}`,
});
const shownKey = publicKey.toString('base64');
const shownReality = { ...reality, private_key: '***' };
const shownDialled = { ...dialled, public_key: shownKey };
const shownPlain = {
  endpoint: '192.0.2.1:53',
  transport_profile: shownProfile('UDP', 'UDP', 'NOISE'),
  tls: false,
  tls_server_name: '',
  noise_public_key: shownKey,
};
const shownTunnel = {
  ...tunnel,
  enabled: true,
  tun: { ...tunnel.tun, address_family: 'ADDRESS_FAMILY_IPV4' },
  transport_profile: shownProfile('IP', 'QUIC', 'REALITY'),
};

describe('the snapshot JSON', () => {
  it('has every field of every kind of rule, lists also when they are empty, and no message that is not set', () => {
    const checksum = Buffer.alloc(32, 0xfe);
    expect(JSON.parse(JSON.stringify(snapshotToJson(whole, checksum)))).toEqual({
      node_id: 'n',
      generation: '7',
      checksum: checksum.toString('base64'),
      gateway: {
        upstream_clusters: [{ ...cluster, health_check: { interval_ms: 10_000, path: '' } }, cluster],
        tcp_proxy_rules: [
          {
            ...head,
            mode: 'TCP_PROXY_MODE_REALITY',
            transport_profile: shownProfile('TCP', 'TCP', 'REALITY'),
            server_names: ['a.example'],
            reality: shownReality,
            tls_credential_id: '',
            outbound: {
              upstream_cluster: 'up',
              transport_profile: shownProfile('UDP', 'UDP', 'NOISE'),
              reality: shownDialled,
              quic_reality: { ...shownDialled, short_id: '89' },
              tls: true,
              tls_server_name: 'c.example',
              noise_public_key: '',
            },
            upstream_tls_spki_pins_sha256: ['AAAA'],
          },
          {
            ...head,
            mode: 'TCP_PROXY_MODE_TLS',
            transport_profile: shownProfile('TCP', 'TCP', 'TLS'),
            server_names: [],
            tls_credential_id: 'cert',
            outbound: shownPlain,
            upstream_tls_spki_pins_sha256: [],
          },
        ],
        http_proxy_rules: [{ ...head, host: 'h.example', path_prefix: '/', upstream_cluster: 'up' }],
        tls: {
          certificates: [
            { credential_id: 'cert', certificate_pem: 'PEM', private_key_pem: '***', server_names: ['a.example'] },
          ],
        },
        quic_rules: [
          {
            ...head,
            transport_profile: shownProfile('TCP', 'QUIC', 'REALITY'),
            reality: shownReality,
            max_streams_per_connection: 100,
            outbound: shownPlain,
            upstream_tls_spki_pins_sha256: ['BBBB'],
          },
        ],
        udp_rules: [
          {
            ...head,
            mode: 'UDP_MODE_ENC',
            transport_profile: shownProfile('UDP', 'UDP', 'NOISE'),
            noise_private_key: '***',
            noise_public_key: shownKey,
            outbound: shownPlain,
          },
          {
            ...head,
            mode: 'UDP_MODE_RAW',
            transport_profile: shownProfile('UDP', 'UDP', 'RAW'),
            noise_private_key: '',
            noise_public_key: '',
            outbound: shownPlain,
          },
        ],
        listener_policies: [policy],
      },
      l3: {
        rules: [
          { ...shownTunnel, role: 'L3_ROLE_LISTENER', reality_inbound: shownReality },
          { ...shownTunnel, role: 'L3_ROLE_CONNECTOR', reality_outbound: shownDialled },
        ],
      },
      node: { multiplex: true, multiplex_port: 4443 },
    });
    expect(snapshotToJson(empty, checksum)).toMatchObject({ gateway: { tcp_proxy_rules: [], listener_policies: [] } });
    expect(snapshotToJson(empty, checksum)).not.toHaveProperty('gateway.tls');
  });
});

describe('the snapshot that is shown', () => {
  const { fleet } = f.given(f.createNode('a'), f.createNode('b'), f.updateNode('a', { name: 'c' }));
  const id = f.nodeId('a');
  const now = fleet.generationOf(id) ?? -1;
  const checksum = 'ab'.repeat(32);
  const made = (generation: number) => ({ kind: 'made', stamp: { generation, checksum }, value: undefined }) as const;
  const keyring = testKeyring();
  const pem = '-----BEGIN PRIVATE KEY-----';
  const place = { stream: streams.fleet, resource_id: 'credential', field: 'private_key_pem' };
  const secret = keyring.seal(Buffer.from(pem), { ...place, resourceId: place.resource_id });
  const key: SecretPlaceholder = { ...place, secret };
  const certificate = { credential_id: 'credential', certificate_pem: 'cert', server_names: ['a.example'] };
  const earlier: NodeSnapshot = {
    ...empty,
    generation: 7,
    tls_certificates: [{ ...certificate, private_key_pem: key }],
  };
  function shown(stamp: SnapshotJsonDeps['newest']['stamp'], checkCompilerVersion = (): void => undefined) {
    const asked: unknown[] = [];
    const snapshotJson = createSnapshotJson({
      fleet: () => fleet,
      newest: { stamp, checkCompilerVersion },
      openSecret: openerOf(keyring),
      async compileEarlier(...args) {
        asked.push(args);
        return earlier;
      },
    });
    return { snapshotJson, asked };
  }

  it('is the newest, also when a later generation is asked for', async () => {
    const { snapshotJson, asked } = shown(() => made(now));
    const snapshot = expect.objectContaining({ node_id: id, generation: String(now) });
    for (const wanted of [undefined, now, now + 1])
      expect(await snapshotJson(id, wanted)).toEqual({ generation: now, checksum, snapshot });
    expect(await snapshotJson(id)).toMatchObject({
      snapshot: { checksum: Buffer.from(checksum, 'hex').toString('base64') },
    });
    expect(asked).toEqual([]);
  });

  it('is an earlier one when that is asked for, as long as this compiler may compile', async () => {
    const { snapshotJson, asked } = shown(() => made(now));
    const sent = encodeSnapshot(earlier, () => Buffer.from(pem));
    const shownEarlier = await snapshotJson(id, now - 1);
    // The checksum is that of the bytes with their secrets opened, none of which is shown.
    expect(shownEarlier).toMatchObject({ generation: 7, checksum: Buffer.from(sent.checksum).toString('hex') });
    expect(JSON.stringify(shownEarlier)).not.toContain('BEGIN PRIVATE KEY');
    expect(asked).toEqual([[id, now - 1]]);
    const other = shown(
      () => made(now),
      () => {
        throw new ServiceError('unavailable', 'another compiler');
      },
    );
    await expect(other.snapshotJson(id, now - 1)).rejects.toMatchObject({ code: 'unavailable' });
    expect(other.asked).toEqual([]);
  });

  it('is none of an unknown node, and an error for one that cannot be compiled', async () => {
    expect(await shown(() => ({ kind: 'unknown_node' })).snapshotJson('nobody', 5)).toBeUndefined();
    const withheld = shown(() => ({ kind: 'withheld' })).snapshotJson(id);
    await expect(withheld).rejects.toMatchObject({ code: 'internal' });
  });
});

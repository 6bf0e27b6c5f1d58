/** How an earlier snapshot is shown: its checksum, its secrets, and what is asked for twice. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { createEarlierSnapshots } from '../../src/delivery/earlier-snapshots.js';
import { encodeSnapshot } from '../../src/delivery/encode.js';
import { openerOf } from '../../src/delivery/secrets.js';
import type { NodeSnapshot, SecretPlaceholder } from '../../src/domain/snapshot/snapshot.js';
import { streams } from '../../src/kernel/event.js';
import { testKeyring } from '../support/keyring.js';

const keyring = testKeyring();
const pem = '-----BEGIN PRIVATE KEY-----';

async function snapshotAt(generation: number): Promise<{ snapshot: NodeSnapshot; key: SecretPlaceholder }> {
  const place = { stream: streams.fleet, resourceId: randomUUID(), field: 'private_key_pem' };
  const secret = await keyring.seal(Buffer.from(pem), place);
  const key = { stream: place.stream, resource_id: place.resourceId, field: place.field, secret };
  const certificate = { credential_id: place.resourceId, certificate_pem: 'cert', server_names: ['a.example'] };
  const snapshot: NodeSnapshot = {
    node_id: 'n1',
    generation,
    upstream_clusters: [],
    tcp_proxy_rules: [],
    http_proxy_rules: [],
    tls_certificates: [{ ...certificate, private_key_pem: key }],
    quic_rules: [],
    udp_rules: [],
    listener_policies: [],
    l3_rules: [],
    node: { multiplex: false, multiplex_port: 0 },
  };
  return { snapshot, key };
}

describe('an earlier snapshot', () => {
  it('has the checksum of the bytes with its secrets opened, and shows none of them', async () => {
    const { snapshot, key } = await snapshotAt(5);
    const show = createEarlierSnapshots({ compileEarlier: async () => snapshot, openSecret: openerOf(keyring) });
    const sent = encodeSnapshot(snapshot, new Map([[key, Buffer.from(pem)]]));
    const shown = await show('n1', 7);
    expect(shown).toMatchObject({ generation: 5, checksum: Buffer.from(sent.checksum).toString('hex') });
    expect(JSON.stringify(shown)).not.toContain('BEGIN PRIVATE KEY');
  });

  it('is made once for all who ask at the same time, and for a while after that', async () => {
    const { snapshot } = await snapshotAt(8);
    const compileEarlier = vi.fn(async () => snapshot);
    const show = createEarlierSnapshots({ compileEarlier, openSecret: openerOf(keyring) });
    const [one, two] = await Promise.all([show('n1', 9), show('n1', 9)]);
    expect(two).toBe(one);
    expect(await show('n1', 9)).toBe(one);
    expect(await show('n1', 8)).toBe(one);
    expect(compileEarlier).toHaveBeenCalledTimes(1);
    await show('n1', 10);
    await show('n2', 9);
    expect(compileEarlier).toHaveBeenCalledTimes(3);
  });

  it('that could not be made is tried again', async () => {
    const compileEarlier = vi.fn(async (): Promise<NodeSnapshot | undefined> => undefined);
    compileEarlier.mockRejectedValueOnce(new Error('busy'));
    const show = createEarlierSnapshots({ compileEarlier, openSecret: openerOf(keyring) });
    await expect(show('n1', 9)).rejects.toThrow('busy');
    expect(await show('n1', 9)).toBeUndefined();
    expect(await show('n1', 9)).toBeUndefined();
    expect(compileEarlier).toHaveBeenCalledTimes(3);
  });
});

/** Credentials, and how a new key reaches the agents that use it: `docs/contract/rest.md#credentials`. */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import type { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { issue } from '../support/x509.js';
import { applied, attach, configRequest, enrol } from './support/agent.js';
import type { Control, Link } from './support/agent.js';
import { createChain, createNode, deploy, fresh, hasExactly, port, rawHop } from './support/resources.js';
import type { ListOf, NodeData } from './support/resources.js';
import { refused } from './support/rest.js';
import { sharedService } from './support/running.js';

interface Credential {
  readonly id: string;
  readonly name: string;
  readonly public_key: string | null;
  readonly certificate: { readonly spki_sha256: string; readonly subject_alt_names: readonly string[] } | null;
  readonly in_use_by: readonly { readonly type: string; readonly id: string; readonly name: string }[];
  readonly version: number;
}

const fields = (
  'id name key_type public_key x25519_credential_id server_names short_ids target_host target_port certificate ' +
  'in_use_by managed_by created_at updated_at version'
).split(' ');

const shared = sharedService();
const links: Link[] = [];
afterAll(() => {
  for (const link of links.splice(0)) link.close();
});

const url = '/api/credentials';
const make = (body: object): Promise<Credential> => shared.api.ok('POST', url, { name: fresh('credential'), ...body });
const put = (id: string, body: object): Promise<Credential> => shared.api.ok('PUT', `${url}/${id}`, body);
const makeReality = (keys: Credential, more: object = {}): Promise<Credential> =>
  make({
    key_type: 'reality',
    x25519_credential_id: keys.id,
    server_names: ['www.example'],
    short_ids: ['0123456789abcdef'],
    target_host: 'www.example',
    target_port: 443,
    ...more,
  });

interface Agent {
  readonly node: NodeData;
  readonly control: Control;
  generation(): Promise<number>;
}

/** A node whose agent has asked for its configuration. */
async function agent(address: string): Promise<Agent> {
  const node = await createNode(shared.api, { address });
  const { link, control } = await attach(shared.service.controlEndpoint, enrol(node.id, node.control_psk));
  links.push(link);
  control.say(configRequest());
  control.say(applied(await control.snapshot()));
  return {
    node,
    control,
    generation: async () => (await shared.api.ok<NodeData>('GET', `/api/nodes/${node.id}`)).generation,
  };
}

/** The next snapshot of an agent that is as asked for. */
async function until(
  { control }: Agent,
  holds: (snapshot: RuntimeConfigSnapshot) => boolean,
): Promise<RuntimeConfigSnapshot> {
  for (;;) {
    const snapshot = await control.snapshot();
    if (holds(snapshot)) return snapshot;
  }
}

const tcpRules = (snapshot: RuntimeConfigSnapshot) => snapshot.gateway?.tcpProxyRules ?? [];

/** The public half of 32 raw bytes. */
function publicHalf(bytes: Uint8Array): string {
  const prefix = Buffer.from('302e020100300506032b656e04220420', 'hex');
  const key = createPrivateKey({ key: Buffer.concat([prefix, bytes]), format: 'der', type: 'pkcs8' });
  return createPublicKey(key).export({ format: 'jwk' }).x ?? '';
}

describe('a credential', () => {
  it('has every field, whatever its type, and its private key is not among them', async () => {
    const keys = await make({ key_type: 'x25519' });
    const own = generateKeyPairSync('x25519').privateKey.export({ format: 'jwk' });
    const imported = await make({ key_type: 'x25519', private_key: own.d });
    const made = await issue();
    const all = [
      keys,
      imported,
      await makeReality(keys),
      await make({ key_type: 'tls_cert', certificate_pem: made.cert, private_key_pem: made.key }),
      await make({ key_type: 'tls_cert', self_signed: { common_name: 'b.example' } }),
    ];
    for (const one of all) {
      hasExactly(one, fields);
      expect(await shared.api.ok('GET', `${url}/${one.id}`)).toEqual({
        ...one,
        in_use_by: one.id === keys.id ? [expect.objectContaining({ type: 'credential' })] : [],
      });
    }
    expect(imported.public_key).toBe(own.x);
    const certificate = new X509Certificate(made.cert);
    const spki = createHash('sha256').update(certificate.publicKey.export({ type: 'spki', format: 'der' }));
    expect(all[3]?.certificate).toMatchObject({
      subject: 'CN=a.example',
      spki_sha256: spki.digest('base64'),
      fingerprint_sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
      serial_number: certificate.serialNumber.toLowerCase(),
    });
    expect(all[4]?.certificate).toMatchObject({ subject_alt_names: ['b.example'], self_signed: true });
    const list = await shared.api.ok<ListOf<Credential>>('GET', `${url}?key_type=tls_cert&page_size=500`);
    expect(list.items.map(({ id }) => id).toSorted()).toEqual([all[3]!.id, all[4]!.id].toSorted());
  });

  it('that is used lists its users and is not deleted', async () => {
    const keys = await make({ key_type: 'x25519' });
    const reality = await makeReality(keys);
    const node = await createNode(shared.api);
    const hop = rawHop(node.id, port(), { security: 'reality', credential_id: reality.id });
    const chain = await createChain(shared.api, { hops: [hop] });
    const used = await shared.api.ok<Credential>('GET', `${url}/${reality.id}`);
    expect(used.in_use_by).toEqual([{ type: 'l4_chain', id: chain.id, name: chain.name }]);
    for (const [one, user] of [
      [reality, chain],
      [keys, reality],
    ] as const) {
      refused(await shared.api.send('DELETE', `${url}/${one.id}`), 409, user.name);
    }
    // An edit that would leave the chain without its name.
    await shared.api.ok('PUT', `/api/l4-chains/${chain.id}`, { hops: [{ ...hop, server_names: ['www.example'] }] });
    const renamed = await shared.api.send('PUT', `${url}/${reality.id}`, { json: { server_names: ['other.example'] } });
    refused(renamed, 409, chain.name);
    await shared.api.ok('DELETE', `/api/l4-chains/${chain.id}`);
    for (const one of [reality, keys]) await shared.api.ok('DELETE', `${url}/${one.id}`);
    refused(await shared.api.send('GET', `${url}/${keys.id}`), 404);
  });
});

describe('a new key reaches exactly the agents that use it:', () => {
  it('a certificate its listener, both pins who dials it, and nothing the others', async () => {
    const cert = await make({ key_type: 'tls_cert', self_signed: { common_name: 'gw.example' } });
    const [entry, exit, bystander] = [await agent('192.0.2.1'), await agent('192.0.2.2'), await agent('192.0.2.3')];
    const chain = await createChain(shared.api, {
      hops: [rawHop(entry.node.id, port()), rawHop(exit.node.id, port(), { security: 'tls', credential_id: cert.id })],
    });
    await deploy(shared.api, chain);
    const pin = cert.certificate?.spki_sha256 ?? '';
    const pinsOf = (snapshot: RuntimeConfigSnapshot) =>
      tcpRules(snapshot).flatMap((rule) => rule.upstreamTlsSpkiPinsSha256);
    expect(pinsOf(await until(entry, (snapshot) => tcpRules(snapshot).length > 0))).toEqual([pin]);
    await until(exit, (snapshot) => tcpRules(snapshot).length > 0);
    const untouched = await bystander.generation();

    const rotated = await put(cert.id, { self_signed: { common_name: 'gw.example' } });
    const newPin = rotated.certificate?.spki_sha256 ?? '';
    expect(pinsOf(await until(entry, () => true))).toEqual([newPin, pin]);
    const [stored] = (await until(exit, () => true)).gateway?.tls?.certificates ?? [];
    const leaf = new X509Certificate(stored?.certificatePem ?? '');
    expect(leaf.checkPrivateKey(createPrivateKey(stored?.privateKeyPem ?? ''))).toBe(true);
    expect(stored).toMatchObject({ credentialId: cert.id, serverNames: ['gw.example'] });
    expect(await bystander.generation()).toBe(untouched);
    // A new name of the credential itself is nobody's configuration.
    const before = [await entry.generation(), await exit.generation()];
    await put(cert.id, { name: fresh('renamed') });
    expect([await entry.generation(), await exit.generation()]).toEqual(before);
  });

  it('an x25519 key, through the REALITY credential over it', async () => {
    const keys = await make({ key_type: 'x25519' });
    const reality = await makeReality(keys);
    const [entry, exit] = [await agent('192.0.2.4'), await agent('192.0.2.5')];
    const chain = await createChain(shared.api, {
      hops: [
        rawHop(entry.node.id, port()),
        rawHop(exit.node.id, port(), { security: 'reality', credential_id: reality.id }),
      ],
    });
    await deploy(shared.api, chain);
    for (const one of [entry, exit]) await until(one, (snapshot) => tcpRules(snapshot).length > 0);
    const rotated = await put(keys.id, { private_key: null });
    expect(rotated.public_key).not.toBe(keys.public_key);
    const [dialling] = tcpRules(await until(entry, () => true));
    const [listening] = tcpRules(await until(exit, () => true));
    const dialled = Buffer.from(dialling?.outbound?.reality?.publicKey ?? '').toString('base64url');
    expect(dialled).toBe(rotated.public_key);
    expect(publicHalf(listening?.reality?.privateKey ?? Buffer.alloc(32))).toBe(rotated.public_key);
  });
});

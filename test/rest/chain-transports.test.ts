/**
 * L4 chains over every transport through REST, with real credentials: what answers show of a hop, and the keys that agents
 * get (`docs/contract/rest.md#l4-chains`, `docs/contract/domain.md#l4-chain`).
 */
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { x25519PairOf } from '../../src/kernel/crypto/crypto.js';
import { decoded } from '../support/delivery-fixture.js';
import { realityOver, startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
let nodes: readonly JsonData[];
let keys: JsonData;
let reality: JsonData;
let leaf: JsonData;

const credential = (body: object): Promise<JsonData> => rest.data('POST', '/api/credentials', { body });

beforeAll(async () => {
  rest = await startRest();
  nodes = await Promise.all(
    ['in', 'out'].map((name) => rest.data('POST', '/api/nodes', { body: { name, address: `${name}.example` } })),
  );
  keys = await credential({ name: 'keys', key_type: 'x25519' });
  reality = await credential(realityOver(keys.id, 'front', ['One.Example', 'two.example'], { short_ids: ['0a1b'] }));
  leaf = await credential({
    name: 'leaf',
    key_type: 'tls_cert',
    self_signed: { common_name: 'leaf.example', subject_alt_names: ['*.leaf.example', 'leaf.example'] },
  });
});
afterAll(() => rest.close());

let port = 1000;
const target = { endpoint: '192.0.2.1:80' };
/** The body of a chain of two hops of the same kind. */
const chainOf = (name: string, payload: 'tcp' | 'udp', hop: object): JsonData => {
  port += 1;
  return { name, payload, hops: nodes.map(({ id }) => ({ node_id: id, listen_port: port, ...hop })), target };
};
const create = (body: object) => rest.call('POST', '/api/l4-chains', { body });

describe('a hop in an answer', () => {
  it.each<[string, 'tcp' | 'udp', () => object, () => object]>([
    ['tls', 'tcp', () => ({ outer: 'tcp', security: 'tls', credential_id: leaf.id }), () => ({})],
    ['reality', 'tcp', () => ({ outer: 'tcp', security: 'reality', credential_id: reality.id }), () => ({})],
    [
      'quic',
      'udp',
      () => ({ outer: 'quic', security: 'reality', credential_id: reality.id }),
      () => ({ max_streams: 100 }),
    ],
    [
      'quic with max_streams',
      'tcp',
      () => ({ outer: 'quic', security: 'reality', credential_id: reality.id, max_streams: 65_535 }),
      () => ({}),
    ],
    ['noise', 'udp', () => ({ outer: 'fake_tcp', security: 'noise', credential_id: keys.id }), () => ({})],
  ])(
    'of %s has what was sent and the defaults, without default names, and can be sent back',
    async (name, payload, hop, more) => {
      const body = chainOf(`shown ${name}`, payload, hop());
      const made = (await create(body)).json().data;
      const expected = body.hops.map((one: object) => ({ ...one, listen_addr: '0.0.0.0', ...more() }));
      expect(made.hops).toEqual(expected);
      const { hops, target: to } = made;
      const again = await rest.data('PUT', `/api/l4-chains/${made.id}`, { body: { payload, hops, target: to } });
      expect(again).toEqual(made);
    },
  );

  it('has its names as they were sent, lower-cased, in their order', async () => {
    const hop = {
      outer: 'tcp',
      security: 'reality',
      credential_id: reality.id,
      server_names: ['TWO.example', 'one.example'],
    };
    const made = (await create(chainOf('names', 'tcp', hop))).json().data;
    expect(made.hops[0].server_names).toEqual(['two.example', 'one.example']);
  });

  it.each([0, 65_536, 1.5, '5', null])('refuses max_streams %j', async (max_streams) => {
    const hop = { outer: 'quic', security: 'reality', credential_id: reality.id, max_streams };
    const answer = await create(chainOf('streams', 'tcp', hop));
    expect(answer.statusCode).toBe(400);
    expect(answer.json().error).toContain('hops[0].max_streams: expected an integer from 1 to 65535');
  });
});

describe('the agents of a chain', () => {
  const pinOf = (certificate: X509Certificate): string =>
    createHash('sha256')
      .update(certificate.publicKey.export({ type: 'spki', format: 'der' }))
      .digest('base64');
  const publicOf = (privateKey: Buffer | undefined): string =>
    Buffer.from(x25519PairOf(privateKey ?? Buffer.alloc(0)).publicKey).toString('base64url');

  /** Deploys a chain and gives what both agents get. */
  async function deployed(
    name: string,
    payload: 'tcp' | 'udp',
    hop: object,
  ): Promise<readonly RuntimeConfigSnapshot[]> {
    const chain = (await create(chainOf(name, payload, hop))).json().data;
    const agents = await Promise.all(nodes.map(({ id }) => rest.connect(id)));
    await rest.data('POST', `/api/l4-chains/${chain.id}/deploy`);
    const pushes = await Promise.all(agents.map((agent) => agent.receive()));
    await Promise.all(agents.map((agent) => agent.disconnect()));
    await rest.data('DELETE', `/api/l4-chains/${chain.id}`);
    return pushes.map(decoded);
  }

  it('get the certificate with its key, and its pin to dial by', async () => {
    const [first, second] = await deployed('tls', 'tcp', { outer: 'tcp', security: 'tls', credential_id: leaf.id });
    for (const { gateway } of [first!, second!]) {
      const [sent] = gateway?.tls?.certificates ?? [];
      const certificate = new X509Certificate(sent?.certificatePem ?? '');
      expect(certificate.checkPrivateKey(createPrivateKey(sent?.privateKeyPem ?? ''))).toBe(true);
      expect(gateway?.tcpProxyRules[0]?.serverNames).toEqual(['*.leaf.example', 'leaf.example']);
    }
    const certificate = new X509Certificate(second?.gateway?.tls?.certificates[0]?.certificatePem ?? '');
    expect(first?.gateway?.tcpProxyRules[0]).toMatchObject({
      upstreamTlsSpkiPinsSha256: [pinOf(certificate)],
      outbound: { tls: true, tlsServerName: 'leaf.example' },
    });
  });

  it('get the REALITY key, and its public half to dial by', async () => {
    const [first, second] = await deployed('quic', 'udp', {
      outer: 'quic',
      security: 'reality',
      credential_id: reality.id,
    });
    const rule = second?.gateway?.quicRules[0];
    expect(publicOf(rule?.reality?.privateKey)).toBe(keys.public_key);
    expect(rule?.reality?.serverNames).toEqual(['one.example', 'two.example']);
    expect(first?.gateway?.quicRules[0]?.outbound?.quicReality).toEqual({
      publicKey: Buffer.from(keys.public_key, 'base64url'),
      serverName: 'one.example',
      shortId: '0a1b',
    });
  });

  it('get the Noise key, and its public half to dial by', async () => {
    const [first, second] = await deployed('noise', 'udp', { outer: 'udp', security: 'noise', credential_id: keys.id });
    const rule = second?.gateway?.udpRules[0];
    expect(publicOf(rule?.noisePrivateKey)).toBe(keys.public_key);
    expect(rule?.noisePublicKey).toEqual(Buffer.from(keys.public_key, 'base64url'));
    expect(first?.gateway?.udpRules[0]?.outbound?.noisePublicKey).toEqual(rule?.noisePublicKey);
  });

  it('get both pins while the key of a certificate changes', async () => {
    const hop = { outer: 'tcp', security: 'tls', credential_id: leaf.id };
    const chain = (await create(chainOf('rotating', 'tcp', hop))).json().data;
    await rest.data('POST', `/api/l4-chains/${chain.id}/deploy`);
    const [agent] = await Promise.all(nodes.slice(0, 1).map(({ id }) => rest.connect(id)));
    const body = { self_signed: { common_name: 'leaf.example' } };
    const rotated = await rest.data('PUT', `/api/credentials/${leaf.id}`, { body });
    const snapshot = decoded(await agent!.receive());
    expect(snapshot.gateway?.tcpProxyRules[0]?.upstreamTlsSpkiPinsSha256).toEqual([
      rotated.certificate.spki_sha256,
      leaf.certificate.spki_sha256,
    ]);
    await agent!.disconnect();
  });
});

describe('what a builder of chains may choose', () => {
  it('the combinations that are listed, with the credential that they say, are taken, and all others refused by naming them', async () => {
    const { items } = await rest.data('GET', '/api/l4-chains/transports', { role: 'viewer' });
    const ofType: JsonData = { tls_cert: leaf.id, reality: reality.id, x25519: keys.id };
    const listed: { readonly [combination: string]: string | null } = Object.fromEntries(
      items.map((one: JsonData) => [
        `payload ${one.payload} with outer ${one.outer} and security ${one.security}`,
        one.key_type,
      ]),
    );
    expect(listed).toEqual({
      'payload tcp with outer tcp and security raw': null,
      'payload tcp with outer tcp and security tls': 'tls_cert',
      'payload tcp with outer tcp and security reality': 'reality',
      'payload tcp with outer quic and security reality': 'reality',
      'payload udp with outer quic and security reality': 'reality',
      'payload udp with outer udp and security raw': null,
      'payload udp with outer udp and security noise': 'x25519',
      'payload udp with outer fake_tcp and security raw': null,
      'payload udp with outer fake_tcp and security noise': 'x25519',
    });
    for (const payload of ['tcp', 'udp'] as const) {
      for (const outer of ['tcp', 'udp', 'quic', 'fake_tcp']) {
        for (const security of ['raw', 'tls', 'reality', 'noise']) {
          const keyType = listed[`payload ${payload} with outer ${outer} and security ${security}`];
          const credential_id = keyType ? { credential_id: ofType[keyType] } : {};
          const name = `choice ${payload} ${outer} ${security}`;
          const answer = await create(chainOf(name, payload, { outer, security, ...credential_id }));
          expect([name, answer.statusCode]).toEqual([name, keyType === undefined ? 400 : 201]);
          if (keyType !== undefined) continue;
          const { error } = answer.json();
          expect(error).toMatch(/^invalid_request: hops\[0\]: expected one of the combinations /);
          for (const combination of Object.keys(listed)) expect(error).toContain(combination);
          expect(error.match(/payload/g)).toHaveLength(items.length);
        }
      }
    }
  });

  it('free ports are those that no listener of the node claims, nor its multiplexing', async () => {
    const node = await rest.data('POST', '/api/nodes', { body: { name: 'ports', address: 'ports.example' } });
    const free = async (transport: string): Promise<number[]> =>
      (await rest.data('GET', `/api/nodes/${node.id}/free-ports?transport=${transport}`, { role: 'viewer' })).ports;
    expect(await free('tcp')).toEqual([443, 8443, 80, 8080, 10_000, 10_001, 10_002, 10_003]);
    const chain = async (listen_port: number, hop: object, payload = 'tcp') => {
      const hops = [{ node_id: node.id, listen_port, ...hop }];
      await rest.data('POST', '/api/l4-chains', { body: { name: `on ${listen_port}`, payload, hops, target } });
    };
    await chain(443, { outer: 'tcp', security: 'raw' });
    await chain(10_001, { outer: 'fake_tcp', security: 'raw' }, 'udp');
    await chain(8443, { outer: 'udp', security: 'raw' }, 'udp');
    await rest.data('PUT', '/api/settings/connectivity', {
      body: { nodes: [{ node_id: node.id, multiplex: true, multiplex_port: 80 }] },
    });
    expect(await free('tcp')).toEqual([8443, 8080, 10_000, 10_002, 10_003, 10_004, 10_005, 10_006]);
    expect(await free('udp')).toEqual([443, 80, 8080, 10_000, 10_001, 10_002, 10_003, 10_004]);
    const answer = await rest.call('GET', `/api/nodes/${node.id}/free-ports?transport=quic`);
    expect([answer.statusCode, answer.json().error]).toEqual([400, expect.stringContaining('transport')]);
  });
});

/**
 * What each transport requires of a hop, what it refuses and what it fills in, and which edits of a credential its users
 * stand in the way of (`docs/contract/domain.md#l4-chain`). What they compile to is in `transport-table.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import type { Hop, Payload } from '../../src/domain/chain/chain.js';
import type { KeyType } from '../../src/domain/credential/credential.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import * as f from '../support/fleet.js';

const id = f.credentialId;
const credentials = [
  f.createX25519('reality key'),
  f.createReality('reality', 'reality key', { server_names: ['one.example', 'two.example'], short_ids: ['0a1b'] }),
  f.createX25519('x25519'),
  f.createTlsCert('tls_cert', f.rotatedTo('tls_cert', { subject_alt_names: ['leaf.example', '*.leaf.example'] })),
  f.createTlsCert('wild', f.rotatedTo('wild', { subject_alt_names: ['*.wild.example'] })),
  f.createTlsCert('nameless', f.rotatedTo('nameless', { subject_alt_names: [] })),
];
const nodes = ['a', 'b', 'c'].map((name) => f.createNode(name));
const world = (): f.Scenario => f.given(...nodes, ...credentials);

const tls = { security: 'tls', credential_id: id('tls_cert') } as const;
const reality = { security: 'reality', credential_id: id('reality') } as const;
const quic = { ...reality, outer: 'quic' } as const;
const noise = { outer: 'udp', security: 'noise', credential_id: id('x25519') } as const;
const fakeNoise = { ...noise, outer: 'fake_tcp' } as const;

/** Every row of the table; `names`: may it have exact names, wildcards. */
const rows: readonly {
  readonly row: string;
  readonly payload: Payload;
  readonly hop: Partial<Hop>;
  readonly keyType: KeyType | null;
  readonly names: 'both' | 'exact' | 'none';
}[] = [
  { row: 'tcp raw', payload: 'tcp', hop: {}, keyType: null, names: 'both' },
  { row: 'tcp tls', payload: 'tcp', hop: tls, keyType: 'tls_cert', names: 'both' },
  { row: 'tcp reality', payload: 'tcp', hop: reality, keyType: 'reality', names: 'exact' },
  { row: 'quic reality for tcp', payload: 'tcp', hop: quic, keyType: 'reality', names: 'exact' },
  { row: 'quic reality for udp', payload: 'udp', hop: quic, keyType: 'reality', names: 'exact' },
  { row: 'udp raw', payload: 'udp', hop: { outer: 'udp' }, keyType: null, names: 'none' },
  { row: 'udp noise', payload: 'udp', hop: noise, keyType: 'x25519', names: 'none' },
  { row: 'fake_tcp raw', payload: 'udp', hop: { outer: 'fake_tcp' }, keyType: null, names: 'none' },
  { row: 'fake_tcp noise', payload: 'udp', hop: fakeNoise, keyType: 'x25519', names: 'none' },
];

describe.each(rows)('$row', ({ payload, hop, keyType, names }) => {
  const chain = (more: Partial<Hop> = {}) => f.createChain('one', [f.hop('a', 80, { ...hop, ...more })], { payload });

  it('is accepted alone', () => {
    world().when(chain()).thenAccepted();
  });

  it(keyType === null ? 'refuses a credential' : `requires a credential of key_type ${keyType}`, () => {
    const { when } = world();
    if (keyType === null) {
      when(chain({ credential_id: id('x25519') })).thenRefused(
        'invalid_request',
        'hops[0].credential_id',
        'expected none with security raw',
      );
      return;
    }
    const { credential_id: _, ...without } = hop;
    when(f.createChain('one', [f.hop('a', 80, without)], { payload })).thenRefused(
      'invalid_request',
      'hops[0].credential_id: required',
      `key_type ${keyType}`,
    );
    when(chain({ credential_id: id('nowhere') })).thenRefused(
      'invalid_request',
      'hops[0].credential_id',
      `there is no credential ${id('nowhere')}`,
    );
    for (const other of (['x25519', 'reality', 'tls_cert'] as const).filter((one) => one !== keyType)) {
      when(chain({ credential_id: id(other) })).thenRefused(
        'invalid_request',
        `hops[0].credential_id: expected a credential of key_type ${keyType}`,
        `"${other}" is of key_type ${other}`,
      );
    }
  });

  it({ both: 'takes exact names and wildcards', exact: 'takes exact names only', none: 'refuses names' }[names], () => {
    const { when } = world();
    const exact = chain({ server_names: ['two.example'] });
    const wildcard = chain({ server_names: ['two.example', '*.one.example'] });
    if (names === 'none') {
      when(exact).thenRefused('invalid_request', 'hops[0].server_names: expected none');
      return;
    }
    if (names === 'both') when(wildcard).thenAccepted();
    else when(wildcard).thenRefused('invalid_request', 'hops[0].server_names[1]', 'without a wildcard');
    when({
      ...exact,
      name: 'other',
      id: f.chainId('other'),
      hops: [{ ...exact.hops[0]!, listen_port: 81 }],
    }).thenAccepted();
  });

  it(hop.outer === 'quic' ? 'takes max_streams' : 'refuses max_streams', () => {
    const outcome = world().when(chain({ max_streams: 7 }));
    if (hop.outer === 'quic') outcome.thenAccepted();
    else outcome.thenRefused('invalid_request', 'hops[0].max_streams: expected none unless outer is quic');
  });
});

describe('the names of a hop', () => {
  const at = (hop: Partial<Hop>, port = 80) =>
    f.createChain(`chain ${port}`, [f.hop('a', port, hop)], { payload: 'tcp' });

  it('with reality are a subset of those of its credential', () => {
    const { when } = world();
    when(at({ ...reality, server_names: ['two.example', 'three.example'] })).thenRefused(
      'invalid_request',
      'hops[0].server_names[1]',
      'credential "reality"',
      '"three.example"',
    );
    when(at({ ...quic, server_names: ['three.example'] })).thenRefused('invalid_request', 'hops[0].server_names[0]');
    when(at({ ...reality, server_names: ['two.example', 'one.example'] })).thenAccepted();
  });

  it('with tls need not be names of its certificate', () => {
    world()
      .when(at({ ...tls, server_names: ['elsewhere.example', '*.any.example'] }))
      .thenAccepted();
  });

  it('with tls must be given when the certificate has none', () => {
    const { when } = world();
    when(at({ ...tls, credential_id: id('nameless') })).thenRefused(
      'invalid_request',
      'hops[0].server_names: expected at least one name',
      'credential "nameless"',
    );
    when(at({ ...tls, credential_id: id('nameless'), server_names: ['given.example'] })).thenAccepted();
  });

  const two = (second: Partial<Hop>, first: Partial<Hop> = {}) =>
    f.createChain('two', [f.hop('a', 70, first), f.hop('b', 70, second)], { payload: 'tcp' });

  it('hold an exact one where another hop dials it, whether they are its own or those of its certificate', () => {
    const { when } = world();
    const problem = ['hops[1].server_names: expected at least one name without a wildcard', 'hops[0] dials'] as const;
    when(two({ ...tls, server_names: ['*.a.example', '*.b.example'] })).thenRefused('invalid_request', ...problem);
    when(two({ ...tls, credential_id: id('wild') })).thenRefused('invalid_request', ...problem, '"wild"');
    when(two({ ...tls, credential_id: id('wild'), server_names: ['*.a.example', 'b.example'] })).thenAccepted();
    // The first hop is dialled by clients only.
    when(at({ ...tls, credential_id: id('wild') })).thenAccepted();
    when(at({ ...tls, server_names: ['*.a.example'] }, 81)).thenAccepted();
  });
});

describe('a credential that a chain uses', () => {
  const remove = (name: string) => ({ type: 'DeleteCredential', id: id(name), ifMatch: undefined }) as const;

  it('cannot be deleted, enabled or not, current or deployed', () => {
    const { when } = f.given(
      ...nodes,
      ...credentials,
      f.createChain('was', [f.hop('a', 80, tls)]),
      f.deployChain('was'),
      f.updateChain('was', { hops: [f.hop('a', 80)] }),
      f.createChain('is', [f.udpHop('a', 80, noise)], { enabled: false }),
    );
    when(remove('tls_cert')).thenRefused('conflict', 'l4_chain "was"');
    when(remove('x25519')).thenRefused('conflict', 'l4_chain "is"');
    when(remove('reality')).thenAccepted();
    when(f.deployChain('was')).thenAccepted();
    when(remove('tls_cert')).thenAccepted();
  });

  it('keeps the names that hops use, and the refusal lists every chain that does', () => {
    const named = { ...reality, server_names: ['two.example'] };
    const { when } = f.given(
      ...nodes,
      ...credentials,
      f.createChain('current', [f.hop('a', 80, named)]),
      f.createChain('deployed', [f.hop('b', 80, named)]),
      f.deployChain('deployed'),
      f.updateChain('deployed', { hops: [f.hop('b', 80)] }),
      f.createChain('off', [f.hop('c', 80, named)], { enabled: false }),
      f.createChain('default', [f.hop('a', 81, reality), f.hop('b', 81, reality)]),
    );
    when(f.updateCredential('reality', { server_names: ['one.example', 'new.example'] })).thenRefused(
      'conflict',
      'server_names: expected every name that a hop of',
      'l4_chain "current"',
      'l4_chain "deployed"',
      'l4_chain "off"',
    );
    // Hops without names of their own follow.
    when(f.updateCredential('reality', { server_names: ['two.example', 'new.example'] })).thenAccepted();
  });

  it('keeps names while hops take theirs from it, and an exact one where a hop is dialled', () => {
    const { when } = f.given(
      ...nodes,
      ...credentials,
      f.createChain('entry', [f.hop('a', 80, tls)]),
      f.createChain('dialled', [f.hop('b', 80), f.hop('c', 80, tls)]),
      f.createChain('named', [f.hop('b', 81, { ...tls, server_names: ['x.example'] })]),
    );
    const renewed = (...names: string[]) =>
      f.updateCredential('tls_cert', f.rotatedTo('tls_cert', { subject_alt_names: names }));
    when(renewed()).thenRefused(
      'conflict',
      'certificate_pem: expected a certificate with DNS names',
      'l4_chain "entry"',
      'l4_chain "dialled"',
    );
    const { performed } = when(renewed('*.leaf.example'));
    const message = performed.kind === 'refused' ? performed.refusal.message : '';
    expect(message).toMatch(
      /^certificate_pem: expected a certificate with a DNS name without a wildcard, by which l4_chain "dialled"/,
    );
    expect(message).not.toContain('entry');
    when(renewed('other.example')).thenAccepted();
  });

  it('does not come into the way of others: a new name of it that another chain has on the listener is refused', () => {
    const { when, fleet } = f.given(
      ...nodes,
      ...credentials,
      f.createChain('follows', [f.hop('a', 443, reality)]),
      f.createChain('sni', [f.hop('a', 443, { server_names: ['taken.example'] })]),
      f.createChain('cert', [f.hop('b', 443, tls)]),
      f.createChain('masked', [f.hop('b', 443, { ...reality, server_names: ['one.example'] })]),
      f.createX25519('other'),
      f.createChain('noise', [f.udpHop('a', 53, noise)]),
      f.createChain('other noise', [f.udpHop('a', 53, { ...noise, credential_id: id('other') })]),
    );
    when(f.updateCredential('reality', { server_names: ['one.example', 'taken.example'] })).thenRefused(
      'conflict',
      'l4_chain "follows"',
      'collides with l4_chain "sni"',
    );
    when(f.updateCredential('tls_cert', f.rotatedTo('tls_cert', { subject_alt_names: ['one.example'] }))).thenRefused(
      'conflict',
      'l4_chain "cert"',
      'collides with l4_chain "masked"',
    );
    when(f.updateCredential('x25519', f.x25519Keys('other'))).thenRefused(
      'conflict',
      'collides with l4_chain "other noise"',
    );
    expect(fleet.tables.credential.get(id('x25519'))?.version).toBe(1);
    when(f.updateChain('sni', { enabled: false })).thenAccepted();
    when(f.updateCredential('reality', { server_names: ['one.example', 'taken.example'] })).thenAccepted();
    when(f.updateChain('sni', { enabled: true })).thenRefused('conflict', 'l4_chain "follows"');
  });
});

describe('an edit of a credential touches', () => {
  const live = (): f.Scenario =>
    f.given(
      ...['a', 'b', 'c', 'd', 'e', 'f'].map((name) => f.createNode(name)),
      ...credentials,
      f.createChain('reality', [f.hop('a', 80), f.hop('b', 80, reality), f.hop('c', 80)]),
      f.createChain('named', [f.hop('d', 80, { ...quic, server_names: ['two.example'] })]),
      f.createChain('tls', [f.hop('c', 81), f.hop('d', 81, tls)]),
      f.createChain('noise', [f.udpHop('e', 82), f.udpHop('f', 82, noise)]),
      f.createChain('draft', [f.hop('a', 83, reality), f.hop('e', 83, tls)]),
      ...['reality', 'named', 'tls', 'noise'].map((name) => f.deployChain(name)),
    );
  const sealedKey = { private_key: f.sealedKey('another') };

  it.each<[string, Parameters<typeof f.updateCredential>, readonly string[]]>([
    ['the REALITY target: the listeners', ['reality', { target_port: 444 }], ['b', 'd']],
    ['the first short id: who dials too', ['reality', { short_ids: ['ff'] }], ['a', 'b', 'd']],
    ['a further short id: the listeners', ['reality', { short_ids: ['0a1b', 'ff'] }], ['b', 'd']],
    [
      'the first name: hops without names of their own, and who dials them',
      ['reality', { server_names: ['new.example', 'two.example'] }],
      ['a', 'b'],
    ],
    [
      'a further name: hops without names of their own',
      ['reality', { server_names: ['one.example', 'two.example', 'x.example'] }],
      ['b'],
    ],
    ['the key of a REALITY identity: listeners and who dials', ['reality key', f.x25519Keys('new')], ['a', 'b', 'd']],
    ['a Noise key: the listener and who dials', ['x25519', f.x25519Keys('new')], ['e', 'f']],
    [
      'a renewed certificate of the same key: the listener',
      [
        'tls_cert',
        {
          ...f.rotatedTo('tls_cert', { subject_alt_names: ['leaf.example', '*.leaf.example', 'more.example'] }),
          ...sealedKey,
        },
      ],
      ['d'],
    ],
    [
      'a certificate of another key: who dials too',
      ['tls_cert', f.rotatedTo('new key', { subject_alt_names: ['leaf.example', '*.leaf.example'] })],
      ['c', 'd'],
    ],
    ['a name: no node', ['tls_cert', { name: 'renamed' }], []],
  ])('%s', (_, [name, fields], expected) => {
    const [touched] = f.performAll(live().fleet, [f.updateCredential(name, fields)]);
    expect([...touched!].sort()).toEqual(expected.map(f.nodeId).sort());
  });

  it('who dials a TLS hop, with both pins until the overlap ends', () => {
    const { fleet } = live();
    const pins = () =>
      compileNode(fleet, f.nodeId('c')).tcp_proxy_rules.map((rule) => rule.upstream_tls_spki_pins_sha256);
    expect(pins()).toContainEqual([f.pin('tls_cert')]);
    f.performAll(fleet, [
      f.updateCredential('tls_cert', f.rotatedTo('new key', { subject_alt_names: ['leaf.example'] })),
    ]);
    expect(pins()).toContainEqual([f.pin('new key'), f.pin('tls_cert')]);
    const [touched] = f.performAll(fleet, [f.endOverlap('tls_cert')(fleet)]);
    expect([...touched!]).toEqual([f.nodeId('c')]);
    expect(pins()).toContainEqual([f.pin('new key')]);
  });
});

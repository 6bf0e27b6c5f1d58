/** Which listeners can share a key and which collide, case by case (`docs/contract/domain.md#listeners-and-collisions`). */
import { describe, it } from 'vitest';
import type { Hop } from '../../src/domain/chain/chain.js';
import * as f from '../support/fleet.js';

const at = (fields: Partial<Hop>): Hop => f.hop('n', 80, fields);
const credentials = [
  f.createX25519('r key'),
  f.createReality('r', 'r key', { server_names: ['a.example', 'b.example'] }),
  f.createTlsCert('t', f.rotatedTo('t', { subject_alt_names: ['a.example', 'f.example'] })),
  f.createX25519('x'),
  f.createX25519('same', f.x25519Keys('x')),
  f.createX25519('y'),
];
const pair = (one: Hop, two: Hop): f.Outcome =>
  f
    .given(f.createNode('n'), f.createNode('m'), ...credentials, f.createChain('one', [one]))
    .when(f.createChain('two', [two]));

const any4 = { listen_addr: '0.0.0.0' };
const any6 = { listen_addr: '::' };
const udp = { outer: 'udp' } as const;
const fake = { outer: 'fake_tcp' } as const;
const names = (...server_names: string[]): Partial<Hop> => ({ server_names });
const id = f.credentialId;
// Without names of their own: a.example and b.example, a.example and f.example.
const reality = { security: 'reality', credential_id: id('r') } as const;
const tls = { security: 'tls', credential_id: id('t') } as const;
const quic = { ...reality, outer: 'quic' } as const;
const noise = (credential: string) => ({ ...udp, security: 'noise', credential_id: id(credential) }) as const;

describe('no collision between', () => {
  it.each<[string, Hop, Hop]>([
    ['two ports', at({}), f.hop('n', 81)],
    ['two nodes', at({}), f.hop('m', 80)],
    ['tcp and udp', at({}), at(udp)],
    ['two IPv4 addresses', at({ listen_addr: '10.0.0.1' }), at({ listen_addr: '10.0.0.2' })],
    ['two IPv6 addresses', at({ listen_addr: 'fd00::1' }), at({ listen_addr: 'fd00::2' })],
    ['any IPv4 address and one IPv6 address', at(any4), at({ listen_addr: 'fd00::1' })],
    ['distinct names on one key', at(names('a.example')), at(names('b.example'))],
    ['a name and a wildcard that covers it', at(names('a.example')), at(names('*.example'))],
    ['names and one RAW fallback', at(names('a.example')), at({})],
    ['names and an empty list of names, which is the RAW fallback', at(names('a.example')), at(names())],
    ['FAKE_TCP and udp', at(fake), at(udp)],
    ['REALITY and TLS with distinct names', at({ ...reality, ...names('b.example') }), at(tls)],
    ['REALITY and SNI pre-read with distinct names', at(reality), at(names('f.example'))],
    ['TLS and SNI pre-read with distinct names', at(tls), at(names('b.example'))],
    ['REALITY and one RAW fallback', at(reality), at({})],
    ['TLS and one RAW fallback', at(tls), at({})],
    ['REALITY over tcp and over QUIC', at(reality), at(quic)],
    ['QUIC and one RAW fallback', at(quic), at(udp)],
    ['QUIC and Noise', at(quic), at(noise('x'))],
    [
      'two QUIC routes with distinct names',
      at({ ...quic, ...names('a.example') }),
      at({ ...quic, ...names('b.example') }),
    ],
    ['Noise with distinct keys', at(noise('x')), at(noise('y'))],
    ['Noise and one RAW fallback', at(noise('x')), at(udp)],
    ['FAKE_TCP with Noise and Noise over udp', at({ ...noise('x'), ...fake }), at(noise('x'))],
  ])('%s', (_, one, two) => {
    pair(one, two).thenAccepted();
    pair(two, one).thenAccepted();
  });
});

describe('a collision between', () => {
  it.each<[string, Hop, Hop]>([
    [
      'an IPv4 address and its IPv4-mapped form, as an earlier log may have it',
      at({ listen_addr: '10.0.0.1' }),
      at({ listen_addr: '::ffff:10.0.0.1' }),
    ],
    ['any IPv4 address and an IPv4-mapped one', at(any4), at({ listen_addr: '::ffff:a00:1' })],
    ['two RAW tcp fallbacks', at({}), at({})],
    ['an empty list of names and a RAW tcp fallback', at(names()), at({})],
    ['two RAW udp listeners', at(udp), at(udp)],
    ['lists of names with one in common', at(names('a.example', 'b.example')), at(names('f.example', 'b.example'))],
    ['two equal wildcards', at(names('*.example')), at(names('*.example'))],
    [
      'any IPv4 address and one IPv4 address, even with distinct names',
      at({ ...any4, ...names('a') }),
      at({ listen_addr: '10.0.0.1', ...names('b') }),
    ],
    ['any address and one IPv4 address', at(any6), at({ listen_addr: '10.0.0.1' })],
    ['any address and one IPv6 address', at(any6), at({ listen_addr: 'fd00::1' })],
    ['any address and any IPv4 address', at(any6), at(any4)],
    ['FAKE_TCP and RAW tcp', at(fake), at({})],
    ['FAKE_TCP and a name', at(fake), at(names('a.example'))],
    ['two FAKE_TCP listeners', at(fake), at(fake)],
    ['udp listeners on overlapping addresses', at({ ...udp, ...any6 }), at({ ...udp, ...any4 })],
    ['REALITY and TLS with a name in common', at(reality), at(tls)],
    ['REALITY and SNI pre-read with a name in common', at(reality), at(names('b.example'))],
    ['TLS and SNI pre-read with a name in common', at(tls), at(names('f.example'))],
    [
      'two TLS routes with a name in common',
      at({ ...tls, ...names('x.example') }),
      at({ ...tls, ...names('x.example') }),
    ],
    ['two QUIC routes with a name in common', at(quic), at({ ...quic, ...names('b.example') })],
    ['Noise with one credential', at(noise('x')), at(noise('x'))],
    ['Noise with one key in two credentials', at(noise('x')), at(noise('same'))],
    ['FAKE_TCP and TLS', at(fake), at(tls)],
    ['FAKE_TCP with and without Noise', at({ ...noise('x'), ...fake }), at(fake)],
    ['QUIC on overlapping addresses', at({ ...quic, ...any4 }), at({ ...noise('x'), listen_addr: '10.0.0.1' })],
  ])('%s', (_, one, two) => {
    pair(one, two).thenRefused('conflict', 'hops[0].listen_port', `l4_chain "one" (${f.chainId('one')})`);
    pair(two, one).thenRefused('conflict', 'hops[0].listen_port', `l4_chain "one" (${f.chainId('one')})`);
  });
});

describe('the claims of a chain', () => {
  const world = (): f.Scenario =>
    f.given(f.createNode('n'), f.createNode('m'), f.createChain('one', [f.hop('n', 80)]), f.deployChain('one'));

  it('are its current and its deployed listeners', () => {
    const { when } = world();
    when(f.updateChain('one', { hops: [f.hop('n', 81)] })).thenAccepted();
    when(f.createChain('deployed', [f.hop('n', 80)])).thenRefused('conflict', 'port 80', 'l4_chain "one"');
    when(f.createChain('current', [f.hop('n', 81)])).thenRefused('conflict', 'port 81', 'l4_chain "one"');
    when(f.deployChain('one')).thenAccepted();
    when(f.createChain('deployed', [f.hop('n', 80)])).thenAccepted();
  });

  it('are none while it is disabled, and are checked when it is enabled', () => {
    const { when } = world();
    when(f.updateChain('one', { enabled: false })).thenAccepted();
    when(f.createChain('two', [f.hop('n', 80)])).thenAccepted();
    when(f.updateChain('one', { description: 'still off' })).thenAccepted();
    when(f.updateChain('one', { enabled: true })).thenRefused('conflict', 'hops[0].listen_port', 'l4_chain "two"');
    // Only its current definition moves away.
    when(f.updateChain('one', { hops: [f.hop('m', 80)] })).thenAccepted();
    when(f.updateChain('one', { enabled: true })).thenRefused('conflict', 'port 80 on node "n"', 'l4_chain "two"');
    when({ type: 'DeleteChain', id: f.chainId('two'), ifMatch: undefined }).thenAccepted();
    when(f.updateChain('one', { enabled: true })).thenAccepted();
  });

  it('of its deployed listener keep the deployed names, whatever edits follow', () => {
    const { when } = f.given(
      f.createNode('n'),
      f.createChain('one', [at(names('a.example'))]),
      f.deployChain('one'),
      f.updateChain('one', { hops: [at(names('a.example', 'b.example'))] }),
      f.updateChain('one', { hops: [f.hop('n', 81, names('a.example', 'b.example'))] }),
    );
    when(f.createChain('two', [at(names('a.example'))])).thenRefused('conflict', 'hops[0]', 'l4_chain "one"');
    when(f.createChain('three', [at(names('b.example'))])).thenAccepted();
    when(f.deployChain('one')).thenAccepted();
    when(f.createChain('four', [at(names('a.example'))])).thenAccepted();
  });

  it('are released when it is deleted', () => {
    const { when } = world();
    when({ type: 'DeleteChain', id: f.chainId('one'), ifMatch: undefined }).thenAccepted();
    when(f.createChain('two', [f.hop('n', 80)])).thenAccepted();
  });

  it('never collide with each other', () => {
    const { when } = world();
    when(f.updateChain('one', { hops: [f.hop('n', 80, { listen_addr: '::' })] })).thenAccepted();
    when(f.updateChain('one', { hops: [f.hop('n', 80, { server_names: ['a.example'] })] })).thenAccepted();
    when(f.deployChain('one')).thenAccepted();
  });

  it('are checked on an edit; the refusal names the hop', () => {
    const { when } = world();
    when(f.createChain('two', [f.hop('m', 90), f.hop('n', 90)])).thenAccepted();
    when(f.updateChain('two', { hops: [f.hop('m', 90), f.hop('n', 80)] })).thenRefused(
      'conflict',
      'hops[1].listen_port: the tcp listener 0.0.0.0 port 80 on node "n" collides with l4_chain "one"',
    );
  });
});

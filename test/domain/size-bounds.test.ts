/** The bound of a resource's part of a snapshot is never less than what is sent (`docs/contract/domain.md#scale-the-model-is-built-for`). */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { encodeSnapshot } from '../../src/delivery/encode.js';
import type { Hop } from '../../src/domain/chain/chain.js';
import type { CredentialDefinition } from '../../src/domain/credential/credential.js';
import { compileNode, contributorsOf } from '../../src/domain/compile/compile-node.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { ruleBytes } from '../../src/domain/snapshot/bound.js';
import * as f from '../support/fleet.js';
import { histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';

function sentBytes(fleet: Fleet, nodeId: string): number {
  const snapshot = compileNode(fleet, nodeId);
  return encodeSnapshot(snapshot, ({ secret }) => Buffer.from(secret.ct, 'base64url')).payload.length;
}

function boundOf(fleet: Fleet, nodeId: string): number {
  let bound = ruleBytes;
  for (const { compiled, state } of contributorsOf(fleet, nodeId)) bound += compiled.bound(fleet, state, nodeId);
  return bound;
}

it('in random histories', () => {
  fc.assert(
    fc.property(histories(), (moves) => {
      const { fleet } = play(moves);
      for (const id of fleet.tables.node.ids()) expect(boundOf(fleet, id)).toBeGreaterThanOrEqual(sentBytes(fleet, id));
    }),
    { numRuns: 60 },
  );
});

/** A DNS name of 253 characters, another one for each index. */
const longName = (index: number): string => `n${index}`.padEnd(60, 'x').concat('.y'.repeat(96)).padEnd(253, 'z');
const longNames = Array.from({ length: 64 }, (_, index) => longName(index));
const pem = 'P'.repeat(64 * 1024);

const leaf = { security: 'tls', credential_id: f.credentialId('leaf') } as const;
const front = { security: 'reality', credential_id: f.credentialId('front') } as const;

// Each has one large part, so that no other part makes up for it when it is forgotten.
it.each<[string, Partial<CredentialDefinition>, Partial<Hop>]>([
  ['with the largest certificate', { ...f.rotatedTo('leaf'), certificate_pem: pem }, leaf],
  [
    'with the largest key of a certificate',
    { ...f.rotatedTo('leaf'), private_key: { ...f.sealed, ct: Buffer.from(pem).toString('base64url') } },
    leaf,
  ],
  ['with the most names in a certificate', f.rotatedTo('leaf', { subject_alt_names: longNames }), leaf],
  ['with the most names of its own', f.rotatedTo('leaf'), { ...leaf, server_names: longNames }],
  ['with the most names in a REALITY credential', { server_names: longNames }, front],
  ['with the most names in a REALITY credential, over QUIC', { server_names: longNames }, { ...front, outer: 'quic' }],
])('of a hop %s', (_, fields, hop) => {
  const reality = hop.security === 'reality';
  const { fleet } = f.given(
    f.createNode('a'),
    f.createNode('b'),
    f.createX25519('key'),
    f.createReality('front', 'key', reality ? fields : {}),
    f.createTlsCert('leaf', reality ? {} : fields),
    f.createChain('one', [f.hop('a', 80, hop), f.hop('b', 80, hop)], { payload: 'tcp' }),
    f.deployChain('one'),
  );
  for (const node of ['a', 'b']) {
    const sent = sentBytes(fleet, f.nodeId(node));
    expect(sent).toBeGreaterThan(3 * ruleBytes);
    expect(boundOf(fleet, f.nodeId(node))).toBeGreaterThanOrEqual(sent);
  }
});

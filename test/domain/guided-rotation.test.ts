/** Candidates of PSKs and two identities, as decisions (`docs/contract/rollouts.md#guided-rotation`). */
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { restoreFleet, captureFleet, encodeFleet } from '../../src/domain/fleet/checkpoint.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { acceptedPsks } from '../../src/domain/node/psk.js';
import { newestKey, servedKeys } from '../../src/domain/service/served-keys.js';
import * as f from '../support/fleet.js';

const names = ['a', 'b'];
const expires_at = '2021-01-02T00:00:00.000Z';
const before = Date.parse(expires_at) - 1;
const first = 'first';
const newest = (fleet: Fleet) => newestKey(servedKeys(fleet))?.static_public;
const accepted = (fleet: Fleet, name: string, now = before): readonly string[] => {
  const node = fleet.tables.node.get(f.nodeId(name));
  return node === undefined ? [] : acceptedPsks(servedKeys(fleet), node, now).map(({ fingerprint }) => fingerprint);
};

/** What may happen, to a node or to the identity. */
type Act =
  | { readonly kind: 'issue' | 'candidate' | 'drop' | 'delete'; readonly name: string }
  | { readonly kind: 'prove'; readonly name: string; readonly serial: number }
  | { readonly kind: 'rotate' }
  | { readonly kind: 'retire'; readonly force: boolean };

const name = fc.constantFrom(...names);
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ kind: fc.constantFrom('issue', 'candidate', 'candidate', 'drop', 'delete'), name }),
  fc.record({ kind: fc.constant('prove'), name, serial: fc.nat(5) }),
  fc.constant({ kind: 'rotate' } as const),
  fc.record({ kind: fc.constant('retire'), force: fc.boolean() }),
) as fc.Arbitrary<Act>;

function commandOf(fleet: Fleet, one: Act, serial: number): FleetCommand {
  const key = newest(fleet);
  const psk = {
    fingerprint: `psk ${serial}`,
    verifier: f.sealed,
    ...(key === undefined ? {} : { service_public: key }),
  };
  switch (one.kind) {
    case 'issue':
      return { type: 'IssueNodePsk', id: f.nodeId(one.name), ...psk };
    case 'candidate':
      return { type: 'IssueNodePskCandidate', id: f.nodeId(one.name), ...psk, expires_at };
    case 'drop':
      return { type: 'DropNodePskCandidate', id: f.nodeId(one.name), ifMatch: undefined, now: before };
    case 'delete':
      return { type: 'DeleteNode', id: f.nodeId(one.name), ifMatch: undefined };
    case 'prove':
      return {
        type: 'ProveNodePskCandidate',
        id: f.nodeId(one.name),
        fingerprint: `psk ${serial - one.serial}`,
        now: before,
      };
    case 'rotate':
      return { type: 'RotateServiceIdentity', static_public: `key ${serial}`, static_private: f.sealed };
    case 'retire':
      return { type: 'RetireServiceIdentity', force: one.force, now: before, first };
  }
}

test('whatever happens, a node has at most two PSKs, its agent is never shut out unless somebody says so, and all is folded again', () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 40 }), (acts) => {
      const fleet = emptyFleet();
      f.performAll(
        fleet,
        names.map((one) => f.createNode(one, { psk: { fingerprint: `own ${one}`, verifier: f.sealed } })),
      );
      const proven = new Map(names.map((one) => [one, `own ${one}`]));
      for (const [serial, one] of acts.entries()) {
        const command = commandOf(fleet, one, serial);
        const had = new Map(names.map((each) => [each, accepted(fleet, each)]));
        const done = f.perform(fleet, command);
        for (const each of names) {
          const now = accepted(fleet, each);
          expect(now.length).toBeLessThanOrEqual(2);
          // The PSK that an agent uses ends by nothing but these.
          const own = proven.get(each) ?? '';
          const ends =
            ('name' in one && one.name === each && ['issue', 'delete', 'prove'].includes(one.kind)) ||
            (one.kind === 'retire' && one.force);
          if (had.get(each)?.[0] === own && !ends) expect(now[0]).toBe(own);
        }
        if (done.kind === 'written' && 'name' in one) {
          if (one.kind === 'issue' || one.kind === 'prove') {
            const node = fleet.tables.node.get(f.nodeId(one.name));
            proven.set(one.name, node?.psk?.fingerprint ?? '');
            // An issue drops the candidate, and so does its proof.
            expect(accepted(fleet, one.name)).toEqual([node?.psk?.fingerprint]);
          }
        }
        const candidates = [...fleet.tables.node.values()].filter((node) => node.psk_candidate !== undefined);
        expect([...fleet.candidates.ids()].sort()).toEqual(candidates.map(({ id }) => id).sort());
      }
      const bytes = Buffer.concat([...encodeFleet(captureFleet(fleet))]);
      const again = restoreFleet(bytes);
      expect([...again.candidates.entries()].sort()).toEqual([...fleet.candidates.entries()].sort());
      expect(servedKeys(again)).toEqual(servedKeys(fleet));
      for (const each of names) expect(accepted(again, each)).toEqual(accepted(fleet, each));
    }),
    { numRuns: 200 },
  );
});

describe('a secret', () => {
  const rotated: FleetCommand = { type: 'RotateServiceIdentity', static_public: 'key', static_private: f.sealed };
  const psk = { fingerprint: 'print', verifier: f.sealed };

  it('that was made under a key that is not the newest any more is refused, so that it is made anew', () => {
    for (const type of ['IssueNodePsk', 'IssueNodePskCandidate'] as const) {
      const { when } = f.given(f.createNode('a', { psk }), rotated);
      const command = { type, id: f.nodeId('a'), ...psk, expires_at };
      when(command).thenRefused('precondition_failed');
      when({ ...command, service_public: 'key' }).thenAccepted();
    }
    f.given(rotated).when(f.createNode('b', { psk })).thenRefused('precondition_failed');
  });

  it('of a candidate ends at its time, to the millisecond', () => {
    const fleet = emptyFleet();
    f.performAll(fleet, [
      f.createNode('a', { psk }),
      { type: 'IssueNodePskCandidate', id: f.nodeId('a'), fingerprint: 'next', verifier: f.sealed, expires_at },
    ]);
    expect(accepted(fleet, 'a')).toEqual(['print', 'next']);
    expect(accepted(fleet, 'a', before + 1)).toEqual(['print']);
    const late = { type: 'ProveNodePskCandidate', id: f.nodeId('a'), fingerprint: 'next', now: before + 1 } as const;
    expect(f.perform(fleet, late)).toMatchObject({ kind: 'refused', refusal: { code: 'conflict' } });
  });
});

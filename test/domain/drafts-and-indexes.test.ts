/** Cells, tables and indexes as callers see them, and drafts of them, without the fleet around them. */
import { describe, expect, it } from 'vitest';
import { createCell, createIndex, createTable, draftOf } from '../../src/domain/aggregate/containers.js';
import { claimIndexOn, claimKey, createClaimEntries, type Claim } from '../../src/domain/listeners/claims.js';
import { collisionOf, tcpListenerOn } from '../../src/domain/listeners/collisions.js';
import { sorted } from '../support/fleet-dump.js';
import { describeOwners } from '../../src/domain/resource/rules.js';

describe('a draft', () => {
  function containers() {
    const state = { cell: createCell(1), inner: { table: createTable<string>(), index: createIndex() } };
    state.inner.table.set('old', 'value');
    for (const value of ['one', 'two']) state.inner.index.add('key', value);
    state.inner.index.add('lone', 'value');
    return state;
  }
  type Containers = ReturnType<typeof containers>;
  const seen = ({ cell, inner: { table, index } }: Containers) => ({
    cell: cell.value,
    table: Object.fromEntries(table.entries()),
    rows: [table.size, [...table.ids()].sort(), [...table.values()].sort(), table.has('old'), table.has('new')],
    index: Object.fromEntries(sorted(index)),
    sizes: [...index.keys()].map((key) => [key, index.get(key).size, index.get(key).has('one')]).sort(),
  });

  const changes: [string, (on: Containers) => void][] = [
    ['a value', ({ cell }) => cell.set(9)],
    ['a new row', ({ inner: { table } }) => table.set('new', 'x')],
    ['a row that is replaced', ({ inner: { table } }) => table.set('old', 'x')],
    ['a row that is deleted', ({ inner: { table } }) => table.delete('old')],
    ['a row that is deleted and set again', ({ inner: { table } }) => (table.delete('old'), table.set('old', 'y'))],
    ['a new row that is deleted', ({ inner: { table } }) => (table.set('new', 'x'), table.delete('new'))],
    ['a row that was not there and is deleted', ({ inner: { table } }) => table.delete('nowhere')],
    ['an entry', ({ inner: { index } }) => index.add('key', 'new')],
    ['the first entry of a key', ({ inner: { index } }) => index.add('new', 'value')],
    ['an entry that is there already', ({ inner: { index } }) => index.add('key', 'one')],
    ['an entry that is removed', ({ inner: { index } }) => index.remove('key', 'one')],
    ['the last entry of a key', ({ inner: { index } }) => index.remove('lone', 'value')],
    ['an entry that is not there', ({ inner: { index } }) => index.remove('key', 'nothing')],
    [
      'a removal and an addition',
      ({ inner: { index } }) => (index.remove('lone', 'value'), index.add('lone', 'value')),
    ],
  ];

  it.each(changes)('shows %s like the containers themselves, which keep it once it is merged', (_, change) => {
    const [base, plain] = [containers(), containers()];
    change(plain);
    const before = seen(base);
    const draft = draftOf(base);
    change(draft.state);
    expect(seen(draft.state)).toEqual(seen(plain));
    expect(seen(base)).toEqual(before);
    draft.drop();
    expect([seen(draft.state), seen(base)]).toEqual([before, before]);
    const deeper = draftOf(draft.state);
    change(deeper.state);
    expect([seen(deeper.state), seen(draft.state)]).toEqual([seen(plain), before]);
    deeper.merge();
    expect([seen(draft.state), seen(base)]).toEqual([seen(plain), before]);
    draft.merge();
    expect([seen(draft.state), seen(base)]).toEqual([seen(plain), seen(plain)]);
    // Nothing is left that a second merge could do again.
    base.cell.set(77);
    draft.merge();
    expect(base.cell.value).toBe(77);
  });
});

describe('the index of claims', () => {
  const claim = (fields: Partial<Claim> = {}): Claim => ({
    owner: 'l4_chain/one',
    nodeId: 'n',
    transport: 'tcp',
    addr: '0.0.0.0',
    port: 80,
    family: 'names',
    values: ['x.example'],
    ...fields,
  });
  const tunnel = (fields: Partial<Claim> = {}, credentialId = 'identity', serverName = 'l3.example'): Claim =>
    claim({ transport: 'udp', family: 'l3', values: ['1'], tunnel: { credentialId, serverName }, ...fields });

  it('tells two claims of one resource apart by every part', () => {
    const claims = [
      claim(),
      claim({ nodeId: 'm' }),
      claim({ transport: 'udp' }),
      claim({ addr: '127.0.0.1' }),
      claim({ port: 81 }),
      claim({ family: 'http' }),
      claim({ values: ['y.example'] }),
      tunnel(),
      tunnel({}, 'other'),
      tunnel({}, 'identity', 'other.example'),
      claim({ ...tunnel(), tunnel: undefined as never }),
    ];
    expect(new Set(claims.map(claimKey)).size).toBe(claims.length);
    expect(claimKey(claim())).toBe(claimKey(claim({ owner: 'l4_chain/two' })));
  });

  it('is empty again after every claim is removed, in whatever order', () => {
    const claims = [
      claim(),
      claim({ owner: 'l4_chain/two', values: ['y.example'] }),
      claim({ family: 'exclusive', values: [] }),
      tunnel(),
      tunnel({ owner: 'l3_network/two', values: ['2'] }),
      tunnel({ owner: 'l3_network/three', values: ['3'] }, 'other'),
      tunnel({ addr: '192.0.2.1' }),
    ];
    const entries = createClaimEntries();
    const index = claimIndexOn(entries);
    const keys = () => Object.values(entries).flatMap((each) => [...each.keys()]);
    for (const one of claims) index.add(one);
    expect(keys().length).toBeGreaterThan(10);
    for (const one of [...claims.slice(3), ...claims.slice(0, 3)]) index.remove(one);
    expect(keys()).toEqual([]);
  });

  it('keeps an address while one claim of any family is left on it', () => {
    const index = claimIndexOn(createClaimEntries());
    const others = [claim({ family: 'raw', values: [] }), claim({ owner: 'l4_chain/two' })];
    for (const other of others) {
      index.add(claim());
      index.add(other);
      index.remove(claim());
      expect([...index.addresses('n', 'tcp', 80)]).toEqual(['0.0.0.0']);
      index.remove(other);
      expect([...index.addresses('n', 'tcp', 80)]).toEqual([]);
    }
  });

  it('knows the tunnels of each listener by name and by credential', () => {
    const index = claimIndexOn(createClaimEntries());
    const [one, two] = [tunnel(), tunnel({ owner: 'l3_network/two', values: ['2'] })];
    const elsewhere = [
      tunnel({ nodeId: 'm', owner: 'm' }),
      tunnel({ port: 81, owner: 'p' }),
      tunnel({ addr: '::1', owner: 'a' }),
    ];
    for (const each of [one, two, ...elsewhere]) index.add(each);
    expect([...index.tunnelsNamed(one, 'l3.example')]).toEqual([one.owner, two.owner]);
    expect([...index.tunnelsNamed(one, 'other.example')]).toEqual([]);
    expect([...index.tunnelsWithCredential(one, 'identity')]).toEqual([one.owner, two.owner]);
    index.remove(one);
    expect([...index.tunnelCredentials(one)]).toEqual(['identity']);
    expect([...index.tunnelsNamed(one, 'l3.example')]).toEqual([two.owner]);
    index.remove(two);
    expect([...index.tunnelCredentials(one)]).toEqual([]);
    expect([...index.tunnelCredentials(elsewhere[0]!)]).toEqual(['identity']);
  });

  const collision = (present: readonly Claim[], wanted: Claim) => {
    const claims = claimIndexOn(createClaimEntries());
    for (const one of present) claims.add(one);
    return collisionOf({ claims, multiplexPortOf: () => null, nameOf: () => undefined }, wanted)?.other;
  };
  const own = { owner: 'l3_network/own' };
  const quic = claim({ transport: 'udp', owner: 'l4_chain/quic', values: ['l3.example'] });

  it.each<[string, readonly Claim[], Claim, string | undefined]>([
    ['a QUIC route with the server name of a tunnel', [tunnel()], quic, 'l4_chain/one'],
    ['a tunnel with the server name of a QUIC route', [quic], tunnel(own), 'l4_chain/quic'],
    ['no QUIC route with another name', [tunnel()], { ...quic, values: ['other.example'] }, undefined],
    ['no Noise key that reads like the name of a tunnel', [tunnel()], { ...quic, family: 'local_key' }, undefined],
    [
      'no tunnel whose context id reads like the name of another',
      [tunnel()],
      tunnel({ ...own, values: ['l3.example'] }),
      undefined,
    ],
    [
      'a tunnel with another credential on the same listener',
      [tunnel()],
      tunnel({ ...own, values: ['2'] }, 'other'),
      'l4_chain/one',
    ],
    ['no tunnel with the same credential and another id', [tunnel()], tunnel({ ...own, values: ['2'] }), undefined],
    ['a tunnel with the same id', [tunnel()], tunnel(own), 'l4_chain/one'],
    [
      'no tunnel of its own with another credential',
      [tunnel(own)],
      tunnel({ ...own, values: ['2'] }, 'other'),
      undefined,
    ],
    [
      'one of several credentials that another network has too',
      [
        tunnel(own, 'mine'),
        tunnel({ owner: 'l3_network/two', values: ['2'] }, 'mine'),
        tunnel({ owner: 'l3_network/three', values: ['3'] }, 'theirs'),
      ],
      tunnel({ ...own, values: ['4'] }, 'mine'),
      'l3_network/three',
    ],
  ])('finds %s', (_, present, wanted, other) => {
    expect(collision(present, wanted)).toBe(other);
  });

  it('finds a TCP listener on a port by its node and transport', () => {
    const claims = claimIndexOn(createClaimEntries());
    const view = { claims, multiplexPortOf: () => null, nameOf: () => undefined };
    claims.add(claim({ transport: 'udp' }));
    expect(tcpListenerOn(view, 'n', 80)).toBeUndefined();
    claims.add(claim({ addr: '192.0.2.1' }));
    expect(tcpListenerOn(view, 'n', 80)).toEqual({ owner: 'l4_chain/one', addr: '192.0.2.1' });
    expect([tcpListenerOn(view, 'n', 81), tcpListenerOn(view, 'm', 80)]).toEqual([undefined, undefined]);
  });
});

describe('owners in a sentence', () => {
  const names = Array.from({ length: 12 }, (_, index) => `x${String(index).padStart(2, '0')}`);
  const sentence = (count: number) =>
    describeOwners(
      { nameOf: (_type, id) => id },
      names
        .slice(0, count)
        .toReversed()
        .map((name) => `route/${name}`),
    );
  const named = (count: number) =>
    names
      .slice(0, count)
      .map((name) => `route "${name}" (${name})`)
      .join(', ');

  it('are sorted, and from the eleventh on only counted', () => {
    expect([1, 9, 10].map(sentence)).toEqual([1, 9, 10].map(named));
    expect(sentence(11)).toMatch(/^route "x00".* and 1 more$/);
    expect(sentence(12)).toBe(`${named(10)} and 2 more`);
    expect(sentence(11).match(/route/g)).toHaveLength(10);
  });
});

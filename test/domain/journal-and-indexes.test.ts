/** State that can be rolled back: cells, tables and indexes as callers see them, without the fleet around them. */
import { describe, expect, it } from 'vitest';
import { createCell, createIndex, createJournal, createTable } from '../../src/domain/aggregate/journal.js';
import { claimKey, createClaimIndex } from '../../src/domain/listeners/claims.js';
import type { Claim } from '../../src/domain/listeners/claims.js';
import { collisionOf, tcpListenerOn } from '../../src/domain/listeners/collisions.js';
import { describeOwners } from '../../src/domain/references/references.js';

describe('a journal', () => {
  function containers() {
    const journal = createJournal();
    const [cell, table, index] = [createCell(journal, 0), createTable<string>(journal), createIndex(journal)];
    const seen = () => ({
      cell: cell.value,
      table: Object.fromEntries(table.entries()),
      index: Object.fromEntries([...index.entries()].map(([key, values]) => [key, [...values].sort()])),
    });
    return { journal, cell, table, index, seen };
  }
  type Containers = ReturnType<typeof containers>;

  it('keeps what was changed unrecorded, and takes back what came after it, also after a failure inside', () => {
    const on = containers();
    const { journal, cell, table, index } = on;
    expect(() =>
      journal.unrecorded(() => {
        cell.set(1);
        table.set('kept', 'value');
        table.set('gone', 'value');
        table.delete('gone');
        index.add('key', 'kept');
        index.add('key', 'gone');
        index.remove('key', 'gone');
        throw new Error('half way');
      }),
    ).toThrow('half way');
    const kept = on.seen();
    expect(kept).toEqual({ cell: 1, table: { kept: 'value' }, index: { key: ['kept'] } });
    cell.set(2);
    table.set('kept', 'other');
    index.add('key', 'new');
    journal.rollback(0);
    expect(on.seen()).toEqual(kept);
  });

  it.each<[string, (on: Containers) => void]>([
    ['a value', ({ cell }) => cell.set(9)],
    ['a new row', ({ table }) => table.set('new', 'x')],
    ['a row that is replaced', ({ table }) => table.set('old', 'x')],
    ['a row that is deleted', ({ table }) => table.delete('old')],
    ['a row that was not there and is deleted', ({ table }) => table.delete('nowhere')],
    ['an entry', ({ index }) => index.add('key', 'new')],
    ['the first entry of a key', ({ index }) => index.add('new', 'value')],
    ['an entry that is there already', ({ index }) => index.add('key', 'one')],
    ['an entry that is removed', ({ index }) => index.remove('key', 'one')],
    ['the last entry of a key', ({ index }) => index.remove('lone', 'value')],
    ['an entry that is not there', ({ index }) => index.remove('key', 'nothing')],
    ['an entry of a key that is not there', ({ index }) => index.remove('nowhere', 'nothing')],
    ['a removal and an addition', ({ index }) => (index.remove('lone', 'value'), index.add('lone', 'value'))],
  ])('takes back %s, and only what came after the mark', (_, change) => {
    const on = containers();
    on.cell.set(1);
    on.table.set('old', 'value');
    on.index.add('key', 'one');
    on.index.add('key', 'two');
    on.index.add('lone', 'value');
    const before = on.seen();
    const mark = on.journal.mark();
    change(on);
    on.journal.rollback(mark);
    expect(on.seen()).toEqual(before);
    // The same once more, after what came before is final.
    on.journal.commit();
    change(on);
    on.journal.rollback(on.journal.mark());
    const changed = on.seen();
    on.journal.rollback(0);
    expect(on.seen()).toEqual(before);
    change(on);
    expect(on.seen()).toEqual(changed);
  });

  it('takes nothing back that is final', () => {
    const { journal, cell, table, index, seen } = containers();
    cell.set(1);
    table.set('row', 'value');
    index.add('key', 'value');
    const before = seen();
    journal.commit();
    expect(journal.mark()).toBe(0);
    journal.rollback(0);
    expect(seen()).toEqual(before);
  });

  it('grows with what is changed, and not with what stays as it is', () => {
    const { journal, table, index } = containers();
    expect(journal.mark()).toBe(0);
    index.add('key', 'value');
    const mark = journal.mark();
    index.add('key', 'value');
    index.remove('key', 'other');
    table.delete('nowhere');
    expect(journal.mark()).toBe(mark);
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
    const index = createClaimIndex(createJournal());
    for (const one of claims) index.add(one);
    expect([...index.entries()].length).toBeGreaterThan(10);
    expect(new Set([...index.entries()].map(([key]) => key)).size).toBe([...index.entries()].length);
    for (const one of [...claims.slice(3), ...claims.slice(0, 3)]) index.remove(one);
    expect([...index.entries()]).toEqual([]);
  });

  it('keeps an address while one claim of any family is left on it', () => {
    const index = createClaimIndex(createJournal());
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
    const index = createClaimIndex(createJournal());
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
    const claims = createClaimIndex(createJournal());
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
    const claims = createClaimIndex(createJournal());
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

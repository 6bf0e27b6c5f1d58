/** Reading the server name out of first bytes: of real clients, cut into pieces, hostile, and random. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readClientHello } from '../../src/agent/relays/first-bytes.js';
import { createNameTable } from '../../src/agent/plan/matches.js';
import { extension, helloFor, helloMessage, realHello, records, serverNameExtension } from '../support/tls-bytes.js';

const max = 16 * 1024;
const read = (bytes: Buffer): ReturnType<typeof readClientHello> => readClientHello(bytes, max);

describe('readClientHello', () => {
  it('finds the name that a real client sends, or none', async () => {
    expect(read(await realHello('shop.example'))).toEqual({ kind: 'hello', serverName: 'shop.example' });
    expect(read(await realHello())).toEqual({ kind: 'hello', serverName: undefined });
  });

  it.each([1, 2, 3, 5, 50, 16_384])('joins a ClientHello in records of %i bytes', (size) => {
    expect(read(helloFor('a.b.example', size))).toEqual({ kind: 'hello', serverName: 'a.b.example' });
  });

  it('asks for more at every beginning, never for less than it has, and for no more than there will be', () => {
    for (const size of [7, 16_384]) {
      const whole = helloFor('a.b.example', size);
      for (let length = 0; length < whole.length; length += 1) {
        const result = read(whole.subarray(0, length));
        if (result.kind !== 'more') throw new Error(`${result.kind} at ${length}`);
        expect(result.total).toBeGreaterThan(length);
        expect(result.total).toBeLessThanOrEqual(whole.length);
      }
    }
  });

  it('leaves what follows the ClientHello alone', () => {
    expect(read(Buffer.concat([helloFor('a.example'), Buffer.from('early data')])).kind).toBe('hello');
  });

  it('reads a name in lower case and without its final dot; what is no name is no name', () => {
    const nameIn = (name: string): unknown => {
      const result = read(helloFor(name));
      return result.kind === 'hello' ? result.serverName : result.kind;
    };
    expect(nameIn('Shop.EXAMPLE.')).toBe('shop.example');
    for (const name of ['a b', 'a..b', '*.example', '\u00e4.example', 'x'.repeat(254), '.', 'a\0b']) {
      expect(nameIn(name), name).toBeUndefined();
    }
  });

  it('takes a ClientHello without extensions', () => {
    expect(read(records(helloMessage(undefined)))).toEqual({ kind: 'hello', serverName: undefined });
  });

  const wrong: Readonly<Record<string, Buffer>> = {
    http: Buffer.from('GET / HTTP/1.1\r\n'),
    'an SSH banner': Buffer.from('SSH-2.0-x\r\n'),
    'SSL 2': Buffer.from([0x80, 0x2e, 0x01, 0x03, 0x01]),
    'a record of another type': Buffer.from([23, 3, 3, 0, 1, 1]),
    'a record of another version': Buffer.from([22, 2]),
    'an empty record': Buffer.from([22, 3, 1, 0, 0]),
    'a record above 2^14': Buffer.from([22, 3, 1, 0x40, 1]),
    'another handshake message': Buffer.from([22, 3, 1, 0, 4, 2]),
    'a message above the bound': Buffer.from([22, 3, 1, 0, 4, 1, 1, 0, 0]),
    'two server name extensions': records(helloMessage([serverNameExtension('a.b'), serverNameExtension('c.d')])),
    'two names': records(helloMessage([serverNameExtension('a.b', 'c.d')])),
    'an empty list of names': records(helloMessage([extension(0, Buffer.from([0, 0]))])),
    'a list of names that is too short': records(helloMessage([extension(0, Buffer.from([0, 9, 0, 0, 1, 97]))])),
    'an extension that is too short': records(helloMessage([Buffer.from([0, 1, 0, 9, 1])])),
    'bytes after the extensions': records(
      (() => {
        const message = Buffer.concat([helloMessage([serverNameExtension('a.b')]), Buffer.from('x')]);
        message.writeUIntBE(message.length - 4, 1, 3);
        return message;
      })(),
    ),
  };
  it.each(Object.entries(wrong))('tells %s at once', (_name, bytes) => {
    expect(read(bytes)).toEqual({ kind: 'other' });
  });

  it('reads no more than the bound, whatever lengths are announced', () => {
    const large = records(helloMessage([extension(21, Buffer.alloc(17_000)), serverNameExtension('a.example')]));
    expect(read(large).kind).toBe('other');
    expect(readClientHello(large, 20_000)).toEqual({ kind: 'hello', serverName: 'a.example' });
    for (let length = 0; length <= large.length; length += 97) {
      const result = read(large.subarray(0, length));
      if (result.kind === 'more') expect(result.total).toBeLessThanOrEqual(max);
    }
  });

  it('never throws on changed and random bytes, and what it said stays true of more bytes', () => {
    const whole = helloFor('name.example', 60);
    const changes = fc.array(fc.record({ at: fc.nat(whole.length - 1), value: fc.nat(255) }), { maxLength: 6 });
    fc.assert(
      fc.property(changes, fc.nat(whole.length), fc.uint8Array({ maxLength: 300 }), (edits, cut, random) => {
        const changed = Buffer.from(whole);
        for (const { at, value } of edits) changed[at] = value;
        for (const bytes of [changed, Buffer.from(random), Buffer.concat([whole.subarray(0, cut), random])]) {
          const late = read(bytes);
          for (let length = cut % 23; length < bytes.length; length += 23) {
            const early = read(bytes.subarray(0, length));
            if (early.kind !== 'more') expect(late).toEqual(early);
          }
        }
      }),
      { seed: 9, numRuns: 500 },
    );
  });
});

describe('a table of server names', () => {
  const table = createNameTable([
    ['*.a.example', 'wild'],
    ['x.a.example', 'exact'],
    ['a.example', 'apex'],
  ]);
  it.each([
    ['x.a.example', 'exact'],
    ['y.a.example', 'wild'],
    ['a.example', 'apex'],
    ['z.y.a.example', undefined],
    ['b.example', undefined],
    ['.a.example', undefined],
  ])('gives %s to %s', (name, rule) => {
    expect(table.match(name)).toBe(rule);
  });
});

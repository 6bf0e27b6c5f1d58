/** Reading the server name out of first bytes: of real clients, cut into pieces, hostile, and random. */
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { serverNameIn } from '../../src/agent/relays/first-bytes.js';
import { createNameTable } from '../../src/agent/plan/matches.js';
import { createHelloCollector } from '../../src/channel/tls/hello-collector.js';
import { extension, helloFor, helloMessage, realHello, records, serverNameExtension } from '../support/tls-bytes.js';

const read = (bytes: Buffer): string | undefined => {
  const hello = createHelloCollector(Infinity).push(bytes);
  return typeof hello === 'string' ? hello : serverNameIn(hello.message);
};

describe('the server name in first bytes', () => {
  it('is the one that a real client sends, or none', async () => {
    expect(read(await realHello('shop.example'))).toBe('shop.example');
    expect(read(await realHello())).toBeUndefined();
  });

  it.each([1, 2, 3, 5, 50, 16_384])('is found in records of %i bytes', (size) => {
    expect(read(helloFor('a.b.example', size))).toBe('a.b.example');
  });

  it('leaves what follows the ClientHello alone', () => {
    expect(read(Buffer.concat([helloFor('a.example'), Buffer.from('early data')]))).toBe('a.example');
  });

  it('reads a name in lower case and without its final dot; what is no name is no name', () => {
    expect(read(helloFor('Shop.EXAMPLE.'))).toBe('shop.example');
    for (const name of ['a b', 'a..b', '*.example', '\u00e4.example', 'x'.repeat(254), '.', 'a\0b']) {
      expect(read(helloFor(name)), name).toBeUndefined();
    }
  });

  it('is absent from a ClientHello without extensions', () => {
    expect(read(records(helloMessage(undefined)))).toBeUndefined();
  });

  const noHello: Readonly<Record<string, Buffer>> = {
    http: Buffer.from('GET / HTTP/1.1\r\n'),
    'an SSH banner': Buffer.from('SSH-2.0-x\r\n'),
    'SSL 2': Buffer.from([0x80, 0x2e, 0x01, 0x03, 0x01]),
    'a record of another type': Buffer.from([23, 3, 3, 0, 1, 1]),
    'a record of another version': Buffer.from([22, 2, 1, 0, 4]),
    'an empty record': Buffer.from([22, 3, 1, 0, 0]),
    'a record that is too long': Buffer.from([22, 3, 1, 0x41, 1]),
    'another handshake message': Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0]),
    'a message above the bound': Buffer.from([22, 3, 1, 0, 4, 1, 1, 0, 0]),
  };
  it.each(Object.entries(noHello))('is not looked for in %s', (_name, bytes) => {
    expect(read(bytes)).toBe('other');
  });

  const malformed: Readonly<Record<string, Buffer>> = {
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
  it.each(Object.entries(malformed))('is not taken from a ClientHello with %s', (_name, bytes) => {
    expect(read(bytes)).toBeUndefined();
  });

  it('is looked for at a cost that does not grow with the number of records', () => {
    const head = [1, 0, 0x3f, 0];
    const each = Array.from({ length: 10_000 }, (_, at) => Buffer.of(22, 3, 1, 0, 1, head[at] ?? 0));
    const chunk = Buffer.concat(each);
    const concat = vi.spyOn(Buffer, 'concat');
    expect(read(chunk)).toBe('incomplete');
    const copied = concat.mock.results.reduce((sum, { value }) => sum + (value as Buffer).length, 0);
    concat.mockRestore();
    expect(copied).toBeLessThan(20 * chunk.length);
  });

  it('is not looked for in more bytes than the bound', () => {
    const large = records(helloMessage([extension(21, Buffer.alloc(17_000)), serverNameExtension('a.example')]));
    expect(read(large)).toBe('other');
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
            if (early !== 'incomplete') expect(late).toBe(early);
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
    expect(table(name)).toBe(rule);
  });
});

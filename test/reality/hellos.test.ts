/** The parsers of hellos: what browsers and this client send is read; anything else is refused without an exception. */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildBrowserHello } from '../../src/agent/reality/browser-hello.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { authKeyOf, openClaim, sealClaim, shortIdFromHex } from '../../src/channel/reality/auth.js';
import { readClientHello } from '../../src/channel/tls/client-hello.js';
import { createClientShares, answerShare } from '../../src/channel/tls/key-exchange.js';
import { readServerHello, withShare } from '../../src/channel/tls/server-hello.js';
import { extensionField, message, uint, vector } from '../../src/channel/tls/vectors.js';
import { createHelloCollector } from '../../src/channel/tls/hello-collector.js';
import { createTargetFlightReader, type TargetFlight } from '../../src/transport/listener/reality/target-flight.js';

const shares = createClientShares();
const hello = buildBrowserHello('target.example', shares);

/** A ServerHello for the client's share of X25519. */
function serverHello(share: Uint8Array, group = 0x001d, version = 0x0304, random = randomBytes(32)): Buffer {
  return message(
    2,
    uint(2, 0x0303),
    random,
    vector(1, Buffer.alloc(32)),
    uint(2, 0x1301),
    uint(1, 0),
    vector(2, extensionField(43, uint(2, version)), extensionField(51, uint(2, group), vector(2, share))),
  );
}

const inRecords = (bytes: Buffer, cuts: readonly number[]): Buffer => {
  const parts: Buffer[] = [];
  let at = 0;
  for (const cut of [...cuts, bytes.length]) {
    const part = bytes.subarray(at, Math.max(at, Math.min(cut, bytes.length)));
    if (part.length > 0) parts.push(uint(1, 22), uint(2, 0x0301), vector(2, part));
    at += part.length;
  }
  return Buffer.concat(parts);
};

describe('a ClientHello', () => {
  test('of this client has what the service reads', () => {
    expect(readClientHello(hello.bytes)).toMatchObject({
      serverName: 'target.example',
      offersTls13: true,
      protocols: ['h2', 'http/1.1'],
      sessionIdAt: hello.sessionIdAt,
      sessionId: Buffer.alloc(32),
      random: hello.random,
      x25519: Buffer.from(shares.x25519.publicKey),
      hybrid: shares.hybrid,
    });
  });

  test('of this client is a new one each time, in an order of its own', () => {
    const order = (): string => {
      const { bytes } = buildBrowserHello('target.example', shares);
      return readExtensionTypes(bytes).join();
    };
    expect(new Set(Array.from({ length: 10 }, order)).size).toBeGreaterThan(5);
  });

  test('of this client draws its last GREASE as its first, and never the same', () => {
    const drawn = Array.from({ length: 300 }, () => {
      const types = readExtensionTypes(buildBrowserHello('target.example', shares).bytes);
      return [types[0], types.at(-1)] as const;
    });
    expect(drawn.every(([first, last]) => first !== last)).toBe(true);
    expect(new Set(drawn.map(([first = 0, last = 0]) => first ^ last)).size).toBeGreaterThan(10);
  });

  test('in more than 64 records is nobody’s, as soon as there are so many', () => {
    const each = Array.from(hello.bytes, (_byte, at) => at).slice(1);
    const wire = inRecords(hello.bytes, each);
    const collector = createHelloCollector(64);
    expect(collector.push(wire.subarray(0, 64 * 6))).toBe('incomplete');
    expect(collector.push(wire.subarray(64 * 6, 65 * 6))).toBe('other');
  });

  test('in any records and pieces is found whole', () => {
    const cuts = fc.uniqueArray(fc.integer({ min: 1, max: hello.bytes.length - 1 }), { maxLength: 8 });
    fc.assert(
      fc.property(cuts, fc.integer({ min: 1, max: 3000 }), (records, piece) => {
        const wire = inRecords(
          hello.bytes,
          records.toSorted((a, b) => a - b),
        );
        const collector = createHelloCollector(64);
        for (let at = 0; at < wire.length; at += piece) {
          const result = collector.push(wire.subarray(at, at + piece));
          if (at + piece < wire.length) expect(result).toBe('incomplete');
          else expect(typeof result === 'object' && !result.followed && result.message.equals(hello.bytes)).toBe(true);
        }
      }),
      { numRuns: 200 },
    );
  });

  test('with more after it is told apart', () => {
    const followed = { message: hello.bytes, followed: true };
    const { push } = createHelloCollector(64);
    expect(push(Buffer.concat([inRecords(hello.bytes, []), Buffer.of(22)]))).toEqual(followed);
    const inItsRecord = inRecords(Buffer.concat([hello.bytes, Buffer.of(1)]), []);
    expect(createHelloCollector(64).push(inItsRecord)).toEqual(followed);
  });

  test('that is altered anywhere opens no claim, and throws nothing', () => {
    const keys = generateX25519();
    const authKey = authKeyOf(shares.x25519, keys.publicKey, hello.random);
    if (authKey === undefined) throw new Error('no key');
    const claim = { version: [1, 2, 3], seconds: 1_700_000_000, shortId: shortIdFromHex('0123ab') } as const;
    const sealed = Buffer.from(hello.bytes);
    sealed.set(sealClaim(authKey, hello.random, hello.bytes, claim), hello.sessionIdAt);
    const read = (bytes: Buffer) => {
      const parsed = readClientHello(bytes);
      const share = parsed?.x25519;
      const key = share && authKeyOf(keys, share, parsed.random);
      return key && openClaim(key, parsed);
    };
    expect(read(sealed)).toEqual({ ...claim, shortId: Buffer.from('0123ab0000000000', 'hex') });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: sealed.length - 1 }), fc.integer({ min: 1, max: 255 }), (at, by) => {
        const altered = Buffer.from(sealed);
        altered[at] = (altered[at] ?? 0) ^ by;
        expect(read(altered)).toBeUndefined();
      }),
      { numRuns: 500 },
    );
  });

  test('that is cut off, or any bytes, is none', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: hello.bytes.length - 1 }), (length) => {
        expect(readClientHello(hello.bytes.subarray(0, length))).toBeUndefined();
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        readClientHello(message(1, bytes));
        createHelloCollector(64).push(Buffer.from(bytes));
      }),
    );
  });
});

describe('a ServerHello', () => {
  test('gives its share, and takes another one in its place', () => {
    const read = readServerHello(serverHello(Buffer.alloc(32, 7)));
    expect(read).toMatchObject({ group: 0x001d, share: Buffer.alloc(32, 7), suite: { id: 0x1301 } });
    if (read === undefined) return;
    const changed = readServerHello(withShare(read, Buffer.alloc(32, 9)));
    expect(changed?.share).toEqual(Buffer.alloc(32, 9));
    expect(changed?.bytes.length).toBe(read.bytes.length);
  });

  test.each([
    ['an older version', serverHello(Buffer.alloc(32), 0x001d, 0x0303)],
    ['another group', serverHello(Buffer.alloc(65), 0x0017)],
    ['a share of the wrong length', serverHello(Buffer.alloc(31))],
    [
      'a request for another hello',
      serverHello(
        Buffer.alloc(32),
        0x001d,
        0x0304,
        Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex'),
      ),
    ],
  ])('with %s is of no use', (_what, bytes) => {
    expect(readServerHello(bytes)).toBeUndefined();
  });

  test.each(['x25519', 'hybrid'] as const)('both sides agree on one secret: %s', (kind) => {
    const client = readClientHello(hello.bytes);
    if (client === undefined) throw new Error('the hello does not parse');
    const group = kind === 'x25519' ? 0x001d : 0x11ec;
    const answer = answerShare(group, client);
    if (answer === undefined) throw new Error('no answer');
    const read = readServerHello(serverHello(answer.share, group));
    expect(read && shares.finish(read)).toEqual(answer.secret);
    expect(answer.secret.length).toBe(kind === 'x25519' ? 32 : 64);
  });

  test('a share of small order leads to no secret', () => {
    const client = readClientHello(hello.bytes);
    if (client === undefined) throw new Error('the hello does not parse');
    expect(answerShare(0x001d, { ...client, x25519: Buffer.alloc(32) })).toBeUndefined();
    expect(answerShare(0x11ec, { ...client, hybrid: Buffer.alloc(1216, 255) })).toBeUndefined();
    expect(shares.finish({ group: 0x001d, share: Buffer.alloc(32) })).toBeUndefined();
  });
});

describe('the flight of a target', () => {
  const record = (type: number, length: number): Buffer =>
    Buffer.concat([uint(1, type), uint(2, 0x0303), vector(2, Buffer.alloc(length))]);
  const first = Buffer.concat([inRecords(serverHello(Buffer.alloc(32)), []), record(20, 0)]);
  first.set([3, 3], 1);
  const start = Buffer.concat([inRecords(serverHello(Buffer.alloc(32)), []), Buffer.of(20, 3, 3, 0, 1, 1)]);

  test('of four records gives their lengths, and those of tickets as soon as their headers have come', () => {
    const four = Buffer.concat([start, record(23, 30), record(23, 800), record(23, 90), record(23, 53)]);
    const read = (bytes: Buffer): TargetFlight => {
      const flight = createTargetFlightReader().push(bytes);
      if (typeof flight === 'string') throw new Error(flight);
      expect(flight.lengths).toEqual([35, 805, 95, 58]);
      return flight;
    };
    const tickets = Buffer.concat([record(23, 200), record(21, 2), record(23, 201)]);
    for (let cut = 0; cut <= tickets.length; cut += 1) {
      const { later } = read(Buffer.concat([four, tickets.subarray(0, cut)]));
      const there = later.lengths();
      if (cut >= 5) expect(there[0]).toBe(205);
      later.push(tickets.subarray(cut));
      expect([...there, ...later.lengths()]).toEqual([205, 206]);
      expect(later.lengths()).toEqual([]);
    }
  });

  test('of one record is told by its length', () => {
    expect(createTargetFlightReader().push(Buffer.concat([start, record(23, 2700)]))).toMatchObject({
      lengths: [2705],
    });
  });

  test('in any pieces is the same', () => {
    const whole = Buffer.concat([start, record(23, 30), record(23, 800), record(23, 90), record(23, 53)]);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: whole.length - 1 }), (piece) => {
        const reader = createTargetFlightReader();
        let result = reader.push(Buffer.alloc(0));
        for (let at = 0; at < whole.length; at += piece) {
          expect(result).toBe('incomplete');
          result = reader.push(whole.subarray(at, at + piece));
        }
        expect(result).toMatchObject({ lengths: [35, 805, 95, 58] });
      }),
    );
  });

  test.each([
    ['an alert', Buffer.of(21, 3, 3, 0, 2, 2, 40)],
    [
      'a ServerHello without a change of ciphers',
      Buffer.concat([inRecords(serverHello(Buffer.alloc(32)), []), record(23, 30)]),
    ],
    ['a change of ciphers of the wrong length', first],
    ['records in the clear', Buffer.concat([start, record(22, 30)])],
    ['no TLS', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ])('%s is of no use', (_what, bytes) => {
    expect(createTargetFlightReader().push(bytes)).toBe('unusable');
  });

  test('any bytes throw nothing', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, begun) => {
        createTargetFlightReader().push(Buffer.concat([begun ? start : Buffer.alloc(0), bytes]));
      }),
    );
  });
});

function readExtensionTypes(bytes: Buffer): readonly number[] {
  const types: number[] = [];
  let at = 4 + 2 + 32 + 33;
  at += 2 + bytes.readUInt16BE(at);
  at += 1 + (bytes[at] ?? 0) + 2;
  while (at < bytes.length) {
    types.push(bytes.readUInt16BE(at));
    at += 4 + bytes.readUInt16BE(at + 2);
  }
  return types;
}

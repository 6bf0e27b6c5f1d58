import { createHmac, generateKeyPairSync, randomBytes, sign as signRaw } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { generateTokenSeed, tokenKeysFrom, createTokens } from '../../src/security/tokens.js';
import { createManualClock } from '../support/manual-clock.js';

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const subject = { sub: '0d7c3a52-6d0e-4a3e-9a51-54b8a1a7c001', role: 'operator', ver: 'third' };

function setup(maxCachedTokens = 100) {
  const seed = generateTokenSeed();
  const clock = createManualClock();
  const tokens = createTokens({ seed, ttlSeconds: 43_200, clock, maxCachedTokens });
  const iat = Math.floor(clock.now() / 1000);
  const forge = (header: unknown, payload: unknown): string => {
    const input = `${encode(header)}.${encode(payload)}`;
    return `${input}.${Buffer.from(ed25519.sign(Buffer.from(input), seed)).toString('base64url')}`;
  };
  return { seed, clock, tokens, iat, forge, good: { ...subject, iat, exp: iat + 60, jti: 'an id' } };
}

describe('an access token', () => {
  it('is an EdDSA JWT with the claims of its user, and another Ed25519 implementation verifies it', () => {
    const { seed, tokens, iat } = setup();
    const { token, expiresIn } = tokens.issue(subject);
    expect(expiresIn).toBe(43_200);
    const [header = '', payload = '', signature = ''] = token.split('.');
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toMatchObject({ alg: 'EdDSA', typ: 'JWT' });
    const claims = { ...subject, iat, exp: iat + 43_200, jti: expect.any(String) };
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toEqual(claims);
    const publicKey = ed25519.getPublicKey(seed);
    const signed = Buffer.from(`${header}.${payload}`);
    expect(ed25519.verify(Buffer.from(signature, 'base64url'), signed, publicKey)).toBe(true);
    expect(tokens.verify(token)).toEqual(claims);
    expect(tokens.verify(token)).toEqual(claims);
  });

  it('expires to the second, cached or not', () => {
    const { clock, tokens } = setup();
    const { token } = tokens.issue(subject);
    const other = tokens.issue({ ...subject, ver: 'fourth' }).token;
    expect(tokens.verify(token)).toBeDefined();
    clock.advance(43_199_000);
    expect(tokens.verify(token)).toBeDefined();
    clock.advance(1000);
    expect(tokens.verify(token)).toBeUndefined();
    expect(tokens.verify(token)).toBeUndefined();
    expect(tokens.verify(other)).toBeUndefined();
  });

  it('is refused when another key signed it', () => {
    const { tokens, clock } = setup();
    const stranger = createTokens({ seed: randomBytes(32), ttlSeconds: 60, clock });
    expect(tokens.verify(stranger.issue(subject).token)).toBeUndefined();
  });

  it('is refused under any other algorithm, including HMAC with the public key', () => {
    const { seed, tokens, good, forge } = setup();
    const keys = tokenKeysFrom(seed);
    expect(tokens.verify(forge({ alg: 'EdDSA', typ: 'JWT' }, good))).toBeDefined();
    for (const alg of ['none', 'HS256', 'RS256', 'ES256', 'eddsa', '', null]) {
      expect(tokens.verify(forge({ alg, typ: 'JWT' }, good))).toBeUndefined();
    }
    const unsigned = `${encode({ alg: 'none', typ: 'JWT' })}.${encode(good)}.`;
    expect(tokens.verify(unsigned)).toBeUndefined();
    const input = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(good)}`;
    const secrets = [
      keys.publicKey.export({ format: 'pem', type: 'spki' }),
      keys.publicKey.export({ format: 'der', type: 'spki' }),
      Buffer.from(keys.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url'),
    ];
    for (const secret of secrets) {
      const mac = createHmac('sha256', secret).update(input).digest('base64url');
      expect(tokens.verify(`${input}.${mac}`)).toBeUndefined();
    }
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const rsaInput = `${encode({ alg: 'RS256', typ: 'JWT' })}.${encode(good)}`;
    const rsa = signRaw('sha256', Buffer.from(rsaInput), privateKey).toString('base64url');
    expect(tokens.verify(`${rsaInput}.${rsa}`)).toBeUndefined();
  });

  it('is refused when it is signed correctly but its claims are malformed', () => {
    const { tokens, forge, good } = setup();
    const header = { alg: 'EdDSA', typ: 'JWT' };
    const { exp: _exp, ...eternal } = good;
    const { jti: _jti, ...nameless } = good;
    const shapes: unknown[] = [
      eternal,
      { ...good, exp: '9999999999' },
      { ...good, exp: 1e300 },
      { ...good, sub: 7 },
      { ...good, role: null },
      { ...good, ver: 3 },
      { ...good, ver: null },
      { ...good, jti: 5 },
      nameless,
      [],
      'text',
      12,
      null,
      {},
    ];
    for (const shape of shapes) expect(tokens.verify(forge(header, shape)), JSON.stringify(shape)).toBeUndefined();
    expect(tokens.verify(forge({ ...header, crit: ['x'], x: 1 }, good))).toBeUndefined();
    expect(tokens.verify(forge({ ...header, typ: 'other' }, good))).toBeUndefined();
  });

  it('is refused with any character altered or missing; garbage never throws', () => {
    const { tokens } = setup();
    const { token } = tokens.issue(subject);
    // The last character of a 64-byte signature carries unused bits, so altering it may change nothing.
    for (let index = 0; index < token.length - 1; index += 1) {
      const altered = token.slice(0, index) + (token[index] === 'A' ? 'B' : 'A') + token.slice(index + 1);
      expect(tokens.verify(altered), `character ${index}`).toBeUndefined();
      expect(tokens.verify(token.slice(0, index))).toBeUndefined();
    }
    fc.assert(fc.property(fc.string({ maxLength: 300 }), (text) => tokens.verify(text) === undefined));
  });

  it('may have 4,096 characters and is refused unread when it has more', () => {
    const { tokens, forge, good } = setup();
    const ofLength = (length: number): string => {
      for (let chars = 0; chars < length; chars += 1) {
        const token = forge({ alg: 'EdDSA', typ: 'JWT' }, { ...good, sub: 'x'.repeat(chars) });
        if (token.length === length) return token;
        // Each character takes four thirds of one; most of the way can be skipped.
        if (token.length < length - 10) chars += Math.floor((length - token.length) / 2);
      }
      throw new Error('no such token');
    };
    expect(tokens.verify(ofLength(4096))).toBeDefined();
    expect(tokens.verify(ofLength(4098))).toBeUndefined();
  });

  it('has an id of its own', () => {
    const { tokens } = setup();
    const ids = [1, 2].map(() => tokens.verify(tokens.issue(subject).token)?.jti);
    expect(new Set(ids).size).toBe(2);
  });

  it('counts as used when it is verified: the cache drops the others first', () => {
    const { tokens } = setup(2);
    const [one, two, three] = ['1', '2', '3'].map((ver) => tokens.issue({ ...subject, ver }).token) as [
      string,
      string,
      string,
    ];
    const first = tokens.verify(one);
    tokens.verify(two);
    expect(tokens.verify(one)).toBe(first);
    tokens.verify(three);
    expect(tokens.verify(one)).toBe(first);
  });

  it('is verified when the cache is too small to hold it', () => {
    const { tokens } = setup(1);
    const issued = ['1', '2', '3'].map((ver) => tokens.issue({ ...subject, ver }).token);
    for (let round = 0; round < 3; round += 1) {
      for (const token of issued) expect(tokens.verify(token)).toBeDefined();
    }
  });

  it('is not issued with a seed of the wrong length, and the error does not show the seed', () => {
    expect(() => tokenKeysFrom(new Uint8Array(31))).toThrow('expected 32 bytes, got 31');
  });
});

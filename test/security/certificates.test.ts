/** Certificates and keys are read from PEM, or refused with a sentence (`docs/contract/rest.md#credentials`). */
import { createHash, createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { readCertificateChain, readPrivateKey } from '../../src/security/certificates.js';
import { createSelfSigned } from '../../src/security/self-signed.js';
import { createCertificate } from '../support/certificate.js';
import type { IssuedCertificate } from '../support/x509.js';
import { authority, issue } from '../support/x509.js';

let ca: IssuedCertificate;
let leaf: IssuedCertificate;
beforeAll(async () => {
  ca = await authority();
  leaf = await issue({ issuer: ca, names: ['A.Example', '*.b.example', 'a.example'] });
});

const chainOf = (pem: string) => {
  const read = readCertificateChain(pem);
  if (!read.ok) throw new Error(read.error);
  return read.value;
};
const keyOf = (pem: string) => {
  const read = readPrivateKey(pem);
  if (!read.ok) throw new Error(read.error);
  return read.value;
};
const chainRefusal = (pem: string) => {
  const read = readCertificateChain(pem);
  return read.ok ? 'accepted' : read.error;
};
const keyRefusal = (pem: string) => {
  const read = readPrivateKey(pem);
  return read.ok ? 'accepted' : read.error;
};
const pkcs8 = { type: 'pkcs8', format: 'pem' } as const;
const spki = { type: 'spki', format: 'pem' } as const;

describe('a certificate chain', () => {
  it('is read: what the leaf says, and all of it in one form', () => {
    const known = new X509Certificate(leaf.cert);
    const chain = chainOf(`a comment\r\n${leaf.cert.replaceAll('\n', '\r\n')}bag attributes\n${ca.cert}`);
    expect(chain.pem).toBe(`${known.toString()}${new X509Certificate(ca.cert).toString()}`);
    expect(chain.leaf).toEqual({
      subject: 'CN=a.example',
      issuer: 'CN=ca.example',
      subject_alt_names: ['a.example', '*.b.example'],
      not_before: new Date(known.validFrom).toISOString(),
      not_after: new Date(known.validTo).toISOString(),
      serial_number: known.serialNumber.toLowerCase(),
      fingerprint_sha256: createHash('sha256').update(known.raw).digest('hex'),
      spki_sha256: createHash('sha256')
        .update(known.publicKey.export({ type: 'spki', format: 'der' }))
        .digest('base64'),
      self_signed: false,
    });
  });

  it('matches the key of its first certificate, in any common form, and no other', async () => {
    const chain = chainOf(leaf.cert + ca.cert);
    const key = createPrivateKey(leaf.key);
    const sec1 = key.export({ type: 'sec1', format: 'pem' }).toString();
    const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n';
    for (const form of [leaf.key, sec1, parameters + sec1]) {
      expect(chain.matches(keyOf(form))).toBe(true);
      expect(keyOf(form).pem).toBe(key.export(pkcs8).toString());
    }
    expect(chain.matches(keyOf(ca.key))).toBe(false);
    const rsa = await issue({ algorithm: 'rsa' });
    const pkcs1 = createPrivateKey(rsa.key).export({ type: 'pkcs1', format: 'pem' }).toString();
    expect(chainOf(rsa.cert).matches(keyOf(pkcs1))).toBe(true);
    const ed25519 = await issue({ algorithm: 'ed25519' });
    expect(chainOf(ed25519.cert).matches(keyOf(ed25519.key))).toBe(true);
  });

  it('has the same pin as long as it has the same key', async () => {
    const renewed = await issue({ issuer: ca, sameKeyAs: leaf, names: ['c.example'] });
    expect(chainOf(renewed.cert).leaf.spki_sha256).toBe(chainOf(leaf.cert).leaf.spki_sha256);
    expect(chainOf(renewed.cert).leaf.fingerprint_sha256).not.toBe(chainOf(leaf.cert).leaf.fingerprint_sha256);
  });

  it('ends with the certificate that ends first', async () => {
    const soon = new Date(Date.UTC(2031, 0, 1));
    const short = await issue({ name: 'ca.example', names: [], sameKeyAs: ca, notAfter: soon });
    const long = await issue({ issuer: ca, notAfter: new Date(Date.UTC(2032, 0, 1)) });
    expect(chainOf(long.cert + short.cert).endsAt).toBe(soon.toISOString());
  });

  it('of a self-signed certificate without DNS names has its common name, if that is one', async () => {
    expect(chainOf((await issue({ names: [], name: 'Gw.Example' })).cert).leaf).toMatchObject({
      subject_alt_names: ['gw.example'],
      self_signed: true,
    });
    expect(chainOf((await issue({ names: [], name: 'no name' })).cert).leaf.subject_alt_names).toEqual([]);
    expect(chainOf((await issue({ names: [], issuer: ca })).cert).leaf.subject_alt_names).toEqual([]);
    // It has an IP address only.
    expect(chainOf(createCertificate('gw.example').cert).leaf.subject_alt_names).toEqual(['gw.example']);
  });

  it('has no name that only looks like one inside another', async () => {
    const tricky = await issue({ names: ['x", DNS:evil.example', 'ok.example', 'y, DNS:evil.example'] });
    expect(chainOf(tricky.cert).leaf.subject_alt_names).toEqual(['ok.example']);
  });

  it.each([
    ['that is none', () => 'no certificate', 'expected PEM certificates'],
    ['that is empty', () => '', 'expected PEM certificates'],
    ['that has no end', () => leaf.cert.split('-----END')[0] ?? '', 'expected PEM certificates'],
    ['that ends as another block', () => leaf.cert.replace('END CERTIFICATE', 'END X'), 'expected PEM certificates'],
    ['with a private key in it', () => leaf.cert + leaf.key, 'a block that is no certificate'],
    [
      'that is no DER',
      () => '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----',
      'certificate 1 cannot be read',
    ],
    ['whose second one is damaged', () => leaf.cert + ca.cert.replace(/\n.{20}/, '\n'), 'certificate 2 cannot be read'],
    ['in another order', () => ca.cert + leaf.cert, 'certificate 2 did not issue certificate 1'],
    ['with a stranger at its end', () => leaf.cert + ca.cert + leaf.cert, 'certificate 3 did not issue certificate 2'],
  ])('%s is refused', (_what, pem, sentence) => {
    expect(chainRefusal(pem())).toContain(sentence);
  });

  it('with a weak key is refused', async () => {
    const weak = await issue({ algorithm: 'weakRsa' });
    expect(chainRefusal(weak.cert)).toBe('expected an RSA key of at least 2048 bits');
    expect(keyRefusal(weak.key)).toBe('expected an RSA key of at least 2048 bits');
  });
});

describe('a private key', () => {
  const generated = (type: 'ed25519' | 'x25519') =>
    generateKeyPairSync(type as 'ed25519', { privateKeyEncoding: pkcs8, publicKeyEncoding: spki });
  const p256 = (encoding: object) =>
    generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      privateKeyEncoding: { ...pkcs8, ...encoding },
      publicKeyEncoding: spki,
    }).privateKey.toString();
  const encrypted = p256({ cipher: 'aes-256-cbc', passphrase: 'secret' });
  const legacy =
    '-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n';
  const secp256k1 = generateKeyPairSync('ec', {
    namedCurve: 'secp256k1',
    privateKeyEncoding: pkcs8,
    publicKeyEncoding: spki,
  }).privateKey;

  it.each([
    ['text', 'no key', 'expected one PEM private key without a passphrase'],
    ['a public key', generated('ed25519').publicKey, 'expected one PEM private key'],
    ['two keys', p256({}) + p256({}), 'expected one PEM private key'],
    ['a key with a passphrase', encrypted, 'without a passphrase'],
    ['a key with a passphrase in an older form', legacy, 'without a passphrase'],
    [
      'no key in a key block',
      '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----',
      'expected one PEM private key',
    ],
    ['an X25519 key', generated('x25519').privateKey, 'expected an RSA, EC or Ed25519 key'],
    ['a key on another curve', secp256k1, 'expected an EC key on P-256, P-384 or P-521'],
  ])('that is %s is refused, and nothing of it is said', (_what, pem, sentence) => {
    const refusal = keyRefusal(pem);
    expect(refusal).toContain(sentence);
    for (const line of pem.split('\n').filter((one) => one.length > 20 && !one.startsWith('---'))) {
      expect(refusal).not.toContain(line);
    }
  });
});

it('no text makes the readers throw', () => {
  const piece = fc.oneof(
    fc.string(),
    fc.constantFrom('-----BEGIN CERTIFICATE-----\n', '\n-----END CERTIFICATE-----\n', '-----BEGIN PRIVATE KEY-----\n'),
    fc.constantFrom('\n-----END PRIVATE KEY-----\n', 'MIIBIjANBg', '\r\n', 'Proc-Type: 4,ENCRYPTED\n'),
    fc.nat(2000).map((at) => leaf.cert.slice(at, at + 400)),
    fc.nat(300).map((at) => leaf.key.slice(at)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      readCertificateChain(pieces.join(''));
      readPrivateKey(pieces.join(''));
    }),
    { numRuns: 300 },
  );
});

it('a damaged certificate is refused or read, but nothing throws', () => {
  const der = new X509Certificate(leaf.cert).raw;
  fc.assert(
    fc.property(fc.nat(der.length - 1), fc.nat(255), (at, value) => {
      const damaged = Buffer.from(der);
      damaged[at] = value;
      const pem = `-----BEGIN CERTIFICATE-----\n${damaged.toString('base64')}\n-----END CERTIFICATE-----\n`;
      readCertificateChain(pem);
    }),
    { numRuns: 500 },
  );
});

describe('a self-signed certificate', () => {
  it('has its names, its time and a new key each time', async () => {
    const wanted = {
      commonName: 'a.example, O=Other',
      subjectAltNames: ['a.example', '*.b.example'],
      notBefore: Date.UTC(2026, 0, 1),
      notAfter: Date.UTC(2126, 0, 1),
    };
    const [made, again] = [await createSelfSigned(wanted), await createSelfSigned(wanted)];
    const chain = chainOf(made.certificatePem);
    expect(chain.leaf).toMatchObject({
      subject_alt_names: ['a.example', '*.b.example'],
      not_before: '2026-01-01T00:00:00.000Z',
      not_after: '2126-01-01T00:00:00.000Z',
      self_signed: true,
    });
    expect(chain.leaf.serial_number).toMatch(/^[0-9a-f]{32}$/);
    // The common name is one attribute, whatever is in it.
    expect(new X509Certificate(made.certificatePem).toLegacyObject().subject.CN).toBe('a.example, O=Other');
    expect(chain.matches(keyOf(made.privateKeyPem))).toBe(true);
    expect(chainOf(again.certificatePem).leaf.spki_sha256).not.toBe(chain.leaf.spki_sha256);
  });
});

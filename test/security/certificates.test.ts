/** Certificates and keys are read from PEM, or refused with a sentence (`docs/contract/rest.md#credentials`). */
import { createHash, createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { runSync } from '../../src/kernel/pieces.js';
import { readCertificateChain, readPrivateKey } from '../../src/security/certificates.js';
import { createSelfSigned } from '../../src/security/self-signed.js';
import { createCertificate } from '../support/certificate.js';
import { authority, issue, type IssuedCertificate } from '../support/x509.js';

let ca: IssuedCertificate;
let leaf: IssuedCertificate;
beforeAll(async () => {
  ca = await authority();
  leaf = await issue({ issuer: ca, names: ['A.Example', '*.b.example', 'a.example'] });
});

const chainOf = (pem: string) => {
  const read = runSync(readCertificateChain(pem));
  if (!read.ok) throw new Error(read.error);
  return read.value;
};
const keyOf = (pem: string) => {
  const read = readPrivateKey(pem);
  if (!read.ok) throw new Error(read.error);
  return read.value;
};
const chainRefusal = (pem: string) => {
  const read = runSync(readCertificateChain(pem));
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

  it('is read one certificate at a time: a hundred of them hold up nothing else', async () => {
    const chain = [await authority()];
    for (let length = 1; length < 12; length += 1) chain.unshift(await issue({ issuer: chain[0]! }));
    const pieces = readCertificateChain(chain.map(({ cert }) => cert).join(''));
    let pauses = 0;
    while (pieces.next().done !== true) pauses += 1;
    expect(pauses).toBe(2 * (chain.length - 1));
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
    ['with a private key in it', () => leaf.cert + leaf.key, 'a block that is not a certificate'],
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

  it('is refused when it has the name of the authority that issued it, and not its key', async () => {
    const impostor = await authority();
    expect(impostor.subject).toBe(ca.subject);
    expect(chainRefusal(leaf.cert + impostor.cert)).toContain('certificate 2 did not issue certificate 1');
    expect(chainRefusal(leaf.cert + ca.cert)).toBe('accepted');
  });

  it('is refused when it has the key of the authority that issued it, and not its name', async () => {
    const renamed = await issue({
      name: 'other.example',
      names: [],
      sameKeyAs: ca,
      extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
    });
    expect(chainRefusal(leaf.cert + renamed.cert)).toContain('certificate 2 did not issue certificate 1');
  });

  it('is self-signed only by its own key under its own name', async () => {
    const own = await issue({ name: 'a.example' });
    const sameName = await issue({ name: 'a.example', issuer: own });
    const sameKey = await issue({ name: 'b.example', issuer: own, sameKeyAs: own });
    expect([own, sameName, sameKey].map(({ cert }) => chainOf(cert).leaf.self_signed)).toEqual([true, false, false]);
  });

  it('names only DNS names, not addresses or locations', async () => {
    const names = new x509.SubjectAlternativeNameExtension([
      { type: 'dns', value: 'a.example' },
      { type: 'ip', value: '192.0.2.1' },
      { type: 'email', value: 'b.example' },
      { type: 'url', value: 'c.example' },
    ]);
    const { cert } = await issue({ names: [], extensions: [names] });
    expect(chainOf(cert).leaf.subject_alt_names).toEqual(['a.example']);
  });

  it('is read with spaces around its lines and blank lines in between', () => {
    const spaced = leaf.cert
      .split('\n')
      .map((line) => `  ${line} \t`)
      .join('\r\n\r\n');
    expect(chainOf(spaced).pem).toBe(chainOf(leaf.cert).pem);
    const key = leaf.key.replaceAll('\n', ' \n\n  ');
    expect(keyOf(key).pem).toBe(keyOf(leaf.key).pem);
  });

  it.each([
    ['nothing', ''],
    ['a blank', ' '],
    ['a tab', '\t'],
    ['a carriage return', '\r'],
  ])('of files that were joined with %s between them has all of their certificates', (_what, between) => {
    expect(chainOf(leaf.cert.trim() + between + ca.cert).pem).toBe(chainOf(leaf.cert + ca.cert).pem);
  });

  it('is refused at the line that belongs to no certificate', () => {
    const lines = leaf.cert.trim().split('\n').length;
    const cut = `${leaf.cert.trim().slice(0, -1)}${ca.cert}`;
    expect(chainRefusal(cut)).toContain(`see line ${lines}`);
    expect(chainRefusal(`${leaf.cert}${ca.cert.replace('END CERTIFICATE', 'END')}`)).toContain('see line');
  });

  it('with a signature that TLS clients refuse is refused, unless it is that of a root on itself', async () => {
    const old = await issue({ name: 'ca.example', algorithm: 'sha1Rsa' });
    const below = await issue({ issuer: old, signedWith: 'sha1Rsa' });
    expect(chainRefusal(below.cert + old.cert)).toContain('certificate 1 is signed with SHA-1 or MD5');
    expect(chainRefusal(old.cert)).toBe('accepted');
  });

  it('is refused when a block behind it has no end, or none is left', () => {
    expect(chainRefusal(`${leaf.cert}-----BEGIN CERTIFICATE-----\nAAAA\n`)).toContain('expected PEM certificates');
    expect(chainRefusal('only text')).toContain('expected PEM certificates');
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
      runSync(readCertificateChain(pieces.join('')));
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
      runSync(readCertificateChain(pem));
    }),
    { numRuns: 500 },
  );
});

describe('a self-signed certificate', () => {
  it('is for a server and no authority, has a serial number of 128 bits and PEM as others write it', async () => {
    const options = { commonName: 'a.example', subjectAltNames: ['a.example'], notBefore: 0, notAfter: 86_400_000 };
    const made = await createSelfSigned(options);
    const read = new X509Certificate(made.certificatePem);
    expect([read.ca, read.keyUsage]).toEqual([false, ['1.3.6.1.5.5.7.3.1']]);
    // 16 bytes whose first is positive and not zero: other writers do not shorten or lengthen it.
    expect(read.serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/);
    expect(new X509Certificate((await createSelfSigned(options)).certificatePem).serialNumber).not.toBe(
      read.serialNumber,
    );
    const parsed = new x509.X509Certificate(made.certificatePem);
    const critical = (type: string) => parsed.getExtension(type)?.critical;
    expect(parsed.getExtension(x509.BasicConstraintsExtension)?.ca).toBe(false);
    expect([critical('2.5.29.19'), critical('2.5.29.15')]).toEqual([true, true]);
    const lines = made.privateKeyPem.trim().split('\n').slice(1, -1);
    expect(lines.slice(0, -1).map(({ length }) => length)).toEqual(lines.slice(0, -1).map(() => 64));
    expect(lines.length).toBeLessThan(5);
  });

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

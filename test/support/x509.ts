/** Certificates for tests, made when they are needed, so that no private key lies in the repository. */
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

x509.cryptoProvider.set(webcrypto as never);

const algorithms = {
  ec: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  rsa: {
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
  },
  weakRsa: {
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    modulusLength: 1024,
    publicExponent: new Uint8Array([1, 0, 1]),
  },
  sha1Rsa: {
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-1',
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
  },
  ed25519: { name: 'Ed25519' },
} as const;

interface Wanted {
  readonly name?: string;
  /** DNS names. */
  readonly names?: readonly string[];
  readonly extensions?: readonly x509.Extension[];
  readonly notBefore?: Date;
  readonly notAfter?: Date;
  readonly algorithm?: keyof typeof algorithms;
  /** How the issuer signs; as an EC key when absent. */
  readonly signedWith?: keyof typeof algorithms;
  /** Itself when absent. */
  readonly issuer?: IssuedCertificate;
  /** Whose key is used again. */
  readonly sameKeyAs?: IssuedCertificate;
}

export interface IssuedCertificate {
  /** PEM. */
  readonly cert: string;
  /** PKCS #8 PEM. */
  readonly key: string;
  readonly keys: webcrypto.CryptoKeyPair;
  readonly subject: string;
}

const day = 24 * 3600 * 1000;

export async function issue(wanted: Wanted = {}): Promise<IssuedCertificate> {
  const { name = 'a.example', names = ['a.example'], extensions = [], issuer, sameKeyAs } = wanted;
  const algorithm = algorithms[wanted.algorithm ?? 'ec'];
  const keys =
    sameKeyAs?.keys ??
    ((await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair);
  const subject = `CN=${name}`;
  const certificate = await x509.X509CertificateGenerator.create({
    subject,
    issuer: issuer?.subject ?? subject,
    notBefore: wanted.notBefore ?? new Date(Date.now() - day),
    notAfter: wanted.notAfter ?? new Date(Date.now() + 365 * day),
    publicKey: keys.publicKey,
    signingKey: (issuer?.keys ?? keys).privateKey,
    signingAlgorithm: issuer === undefined ? algorithm : algorithms[wanted.signedWith ?? 'ec'],
    extensions: [
      ...(names.length === 0
        ? []
        : [new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns' as const, value })))]),
      ...extensions,
    ],
  });
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return {
    cert: `${certificate.toString('pem')}\n`,
    key: `${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`,
    keys,
    subject,
  };
}

/** An authority that may issue others. */
export const authority = (name = 'ca.example'): Promise<IssuedCertificate> =>
  issue({ name, names: [], extensions: [new x509.BasicConstraintsExtension(true, undefined, true)] });

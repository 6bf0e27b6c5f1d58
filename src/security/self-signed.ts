/**
 * Makes self-signed TLS certificates with new keys on P-256. This module is loaded only when the first one is made, because
 * the library that writes X.509 is large. Implements `docs/contract/rest.md#credentials`.
 */
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { generateKeyPair, randomBytes, webcrypto } from 'node:crypto';
import { promisify } from 'node:util';

export interface SelfSignedOptions {
  /** At most 64 characters. */
  readonly commonName: string;
  /** DNS names. */
  readonly subjectAltNames: readonly string[];
  /** Milliseconds since the Unix epoch; a certificate stores whole seconds. */
  readonly notBefore: number;
  readonly notAfter: number;
}

interface SelfSigned {
  readonly certificatePem: string;
  /** PKCS #8. */
  readonly privateKeyPem: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const serialBytes = 16;

/** Makes a key pair and its certificate. */
export async function createSelfSigned(options: SelfSignedOptions): Promise<SelfSigned> {
  const { commonName, subjectAltNames, notBefore, notAfter } = options;
  // Encoded during generation and never exported: Node 20 can deadlock when a garbage collection meets an export.
  const { publicKey, privateKey } = await promisify(generateKeyPair)('ec', {
    namedCurve: algorithm.namedCurve,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
  });
  const keys = {
    publicKey: await webcrypto.subtle.importKey('spki', publicKey, algorithm, true, ['verify']),
    privateKey: await webcrypto.subtle.importKey('pkcs8', privateKey, algorithm, false, ['sign']),
  };
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: serialNumber(),
      name: [{ CN: [commonName] }],
      notBefore: new Date(notBefore),
      notAfter: new Date(notAfter),
      keys,
      signingAlgorithm: algorithm,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension(subjectAltNames.map((value) => ({ type: 'dns', value }))),
      ],
    },
    webcrypto as never,
  );
  const privateKeyPem = pemOf('PRIVATE KEY', privateKey);
  privateKey.fill(0);
  return { certificatePem: `${certificate.toString('pem')}\n`, privateKeyPem };
}

/** Positive, and never with a leading zero byte, so that DER encodes it in full length. */
function serialNumber(): string {
  const bytes = randomBytes(serialBytes);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

function pemOf(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

/** Self-signed TLS certificates with new keys. Implements `docs/contract/rest.md#credentials`, `self_signed`. */
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { generateKeyPair, randomBytes, webcrypto } from 'node:crypto';
import { promisify } from 'node:util';

interface SelfSignedOptions {
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

/** Generates a key pair and its certificate. */
export async function createSelfSigned(options: SelfSignedOptions): Promise<SelfSigned> {
  const { commonName, subjectAltNames, notBefore, notAfter } = options;
  // Encoded during generation and never exported: in Node 20, an export can deadlock with garbage collection.
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
  const privateKeyPem = `${x509.PemConverter.encode(privateKey, 'PRIVATE KEY')}\n`;
  privateKey.fill(0);
  return { certificatePem: `${certificate.toString('pem')}\n`, privateKeyPem };
}

/** Positive, and never with a leading zero byte, so that its DER encoding has full length. */
function serialNumber(): string {
  const bytes = randomBytes(serialBytes);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

/**
 * The certificates of TLS rules, as contexts that terminate TLS. An unchanged certificate keeps its context, so that
 * clients can resume their TLS sessions; live connections keep theirs anyway. Keys are in memory only.
 */
import { constants, createHash } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { TlsCertificate } from '../../gen/svc/control/v1/gateway.js';
import { errorText } from '../../kernel/errors.js';
import { err, ok, type Result } from '../../kernel/result.js';

export type ContextOf = (credentialId: string) => Result<SecureContext, string>;

/**
 * @returns a function to call once per snapshot. It returns a function that makes the context of a credential, or says
 *   why it cannot. Reuses a context of the previous snapshot if certificate and key are the same.
 */
export function createCertificates(): (certificates: readonly TlsCertificate[]) => ContextOf {
  let last = new Map<string, SecureContext>();
  return (certificates) => {
    const before = last;
    const current = new Map<string, SecureContext>();
    last = current;
    const byId = new Map(certificates.map((certificate) => [certificate.credentialId, certificate]));
    return (credentialId) => {
      const certificate = byId.get(credentialId);
      if (certificate === undefined) return err('the snapshot has no certificate with this id');
      const { certificatePem: cert, privateKeyPem: key } = certificate;
      const digest = createHash('sha256').update(`${cert}\0${key}`).digest('base64');
      const known = current.get(digest) ?? before.get(digest);
      try {
        const context = known ?? makeContext(cert, key);
        current.set(digest, context);
        return ok(context);
      } catch (error) {
        return err(`the certificate or its key cannot be used: ${errorText(error)}`);
      }
    };
  };
}

function makeContext(cert: string, key: string): SecureContext {
  // Without both, OpenSSL would make a context that fails every handshake.
  if (cert === '' || key === '') throw new Error('expected both in PEM');
  // With renegotiation, a client could demand the expensive part of a handshake again and again.
  const secureOptions = constants.SSL_OP_NO_RENEGOTIATION;
  return createSecureContext({ cert, key, minVersion: 'TLSv1.2', secureOptions });
}

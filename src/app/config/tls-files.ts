/** The TLS files of REST that the environment names. Implements `docs/contract/configuration.md#configuration`. */
import { X509Certificate, createPrivateKey } from 'node:crypto';
import { constants, readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Config } from './config.js';
import { ConfigError } from './variables.js';

/** PEM texts, and when the certificate ends. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** Milliseconds since the epoch. */
  readonly validFrom: number;
  readonly validTo: number;
}

/**
 * The TLS files of REST. They must match each other: otherwise every handshake would fail. Whether the certificate is
 * valid now is for the caller to judge.
 * @throws ConfigError naming the variable and the file, never its content
 */
export async function readTls(tls: NonNullable<Config['http']['tls']>): Promise<TlsFiles> {
  const cert = await readTlsFile('SVC_HTTP_TLS_CERT_FILE', tls.certFile);
  const key = await readTlsFile('SVC_HTTP_TLS_KEY_FILE', tls.keyFile);
  const certificate = usable('SVC_HTTP_TLS_CERT_FILE', tls.certFile, 'certificates in PEM, with the leaf first', () => {
    createSecureContext({ cert });
    return new X509Certificate(cert);
  });
  const what = 'a private key in PEM, without a passphrase';
  const privateKey = usable('SVC_HTTP_TLS_KEY_FILE', tls.keyFile, what, () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) {
    const expected = `expected the private key of the first certificate in SVC_HTTP_TLS_CERT_FILE`;
    throw new ConfigError([`SVC_HTTP_TLS_KEY_FILE: ${tls.keyFile}: ${expected}`]);
  }
  usable('SVC_HTTP_TLS_KEY_FILE', tls.keyFile, what, () => createSecureContext({ cert, key }));
  const { validFrom, validTo } = certificate;
  return { cert, key, validFrom: Date.parse(validFrom), validTo: Date.parse(validTo) };
}

async function readTlsFile(name: string, file: string): Promise<string> {
  try {
    // Of a pipe nothing is read, at once: waiting for its writer, no later look, and no stop, would come to its turn.
    return await readFile(file, { encoding: 'utf8', flag: constants.O_RDONLY | constants.O_NONBLOCK });
  } catch (error) {
    throw new ConfigError([
      `${name}: ${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    ]);
  }
}

function usable<T>(name: string, file: string, what: string, read: () => T): T {
  try {
    return read();
  } catch {
    throw new ConfigError([`${name}: ${file}: expected ${what}`]);
  }
}

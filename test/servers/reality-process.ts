/**
 * The reference implementation of REALITY as processes: its server, a client that imitates browsers, and a TLS server as
 * their target. Built by `npm run test:servers`.
 */
import { join } from 'node:path';
import { projectRoot } from '../support/project-root.js';
import { runOnce, startServer, type Flags, type RunningServer } from './json-process.js';

export const realityBinary = join(projectRoot, 'dist', 'test-servers', 'reality');

/** What a client found, or why it found nothing. */
export type ClientResult =
  { readonly verified: boolean; readonly echoed?: boolean; readonly error?: undefined } | { readonly error: string };

interface TargetOptions {
  /** RSA instead of P-256. */
  readonly rsa?: boolean;
  /** X25519 alone. */
  readonly classic?: boolean;
  /** The group P-256 alone, for which a browser's hello has no share. */
  readonly p256?: boolean;
}

/** A TLS server of Go, whose flight has a ticket, and which agrees on X25519MLKEM768 where it can. */
export function startGoTarget(name: string, options: TargetOptions = {}): Promise<RunningServer> {
  return startServer(realityBinary, 'target', { name, ...options });
}

export interface Keyed {
  /** 32 bytes. */
  readonly key: Uint8Array;
  /** Hexadecimal. */
  readonly shortId: string;
  readonly name: string;
}

export const flagsOf = ({ key, shortId, name }: Keyed): Flags => ({
  key: Buffer.from(key).toString('base64url'),
  'short-id': shortId,
  name,
});

/** A server that echoes what agents send. @param keyed with the private key */
export function startReferenceServer(keyed: Keyed, targetPort: number): Promise<RunningServer> {
  return startServer(realityBinary, 'server', { ...flagsOf(keyed), dest: `127.0.0.1:${targetPort}` });
}

/** Runs the client once. @param keyed with the public key. @param bytes how many are sent and wanted back */
export async function runReferenceClient(
  keyed: Keyed,
  port: number,
  browser: 'chrome' | 'firefox' | 'safari',
  bytes: number,
): Promise<ClientResult> {
  const options = { ...flagsOf(keyed), address: `127.0.0.1:${port}`, browser, bytes };
  return (await runOnce(realityBinary, 'client', options)) as ClientResult;
}

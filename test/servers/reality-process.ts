/**
 * The reference implementation of REALITY as processes: its server, a client that imitates browsers, and a TLS server as
 * their target. Built by `npm run test:servers`.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { projectRoot } from '../support/project-root.js';

export const realityBinary = join(projectRoot, 'dist', 'test-servers', 'reality');

const answersWithinMs = 60_000;

export interface RunningServer {
  readonly port: number;
  close(): Promise<void>;
}

/** What a client found, or why it found nothing. */
export type ClientResult =
  { readonly verified: boolean; readonly echoed?: boolean; readonly error?: undefined } | { readonly error: string };

function start(mode: string, options: Readonly<Record<string, string | number | boolean>>): ChildProcess {
  const flags = Object.entries(options).map(([name, value]) => `-${name}=${value}`);
  return spawn(realityBinary, [mode, ...flags], { stdio: ['pipe', 'pipe', 'ignore'] });
}

async function firstLine(child: ChildProcess): Promise<unknown> {
  if (child.stdout === null) throw new Error('the process has no output');
  const [line] = (await once(createInterface({ input: child.stdout }), 'line', {
    signal: AbortSignal.timeout(answersWithinMs),
  })) as [string];
  return JSON.parse(line);
}

async function startServer(mode: string, options: Parameters<typeof start>[1]): Promise<RunningServer> {
  const child = start(mode, options);
  const exited = once(child, 'exit');
  const { port } = (await firstLine(child)) as { readonly port: number };
  return {
    port,
    async close() {
      child.stdin?.end();
      await exited;
    },
  };
}

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
  return startServer('target', { name, ...options });
}

interface Keyed {
  /** 32 bytes. */
  readonly key: Uint8Array;
  /** Hexadecimal. */
  readonly shortId: string;
  readonly name: string;
}

const flagsOf = ({ key, shortId, name }: Keyed): Record<string, string> => ({
  key: Buffer.from(key).toString('base64url'),
  'short-id': shortId,
  name,
});

/** A server that echoes what agents send. @param keyed with the private key */
export function startReferenceServer(keyed: Keyed, targetPort: number): Promise<RunningServer> {
  return startServer('server', { ...flagsOf(keyed), dest: `127.0.0.1:${targetPort}` });
}

/** Runs the client once. @param keyed with the public key. @param bytes how many are sent and wanted back */
export async function runReferenceClient(
  keyed: Keyed,
  port: number,
  browser: 'chrome' | 'firefox' | 'safari',
  bytes: number,
): Promise<ClientResult> {
  const child = start('client', { ...flagsOf(keyed), address: `127.0.0.1:${port}`, browser, bytes });
  const exited = once(child, 'exit');
  const result = (await firstLine(child)) as ClientResult;
  child.stdin?.end();
  await exited;
  return result;
}

/** The peer of gateways that was written from the documents alone (`data-plane/`), as processes. Built by `npm run test:servers`. */
import { join } from 'node:path';
import { projectRoot } from '../support/project-root.js';
import { runOnce, startServer, type RunningServer } from './json-process.js';
import { flagsOf, type Keyed } from './reality-process.js';

export const dataPlaneBinary = join(projectRoot, 'dist', 'test-servers', 'data-plane');

const encoded = (key: Uint8Array): string => Buffer.from(key).toString('base64url');

/** A hop that answers each datagram with `t:` and `u:` before it, repeats its packets, and forgets all sessions when told to. */
export function startEncHop(privateKey: Uint8Array): Promise<RunningServer> {
  return startServer(dataPlaneBinary, 'enc-hop', { key: encoded(privateKey) });
}

/** Tries the rules of ENC at a hop. @returns whether each held */
export function dialEncHop(publicKey: Uint8Array, port: number): Promise<unknown> {
  return runOnce(dataPlaneBinary, 'enc-dialler', { key: encoded(publicKey), address: `127.0.0.1:${port}` });
}

/** A hop that greets and echoes. @param keyed with the private key */
export function startRealityHop(keyed: Keyed, targetPort: number): Promise<RunningServer> {
  return startServer(dataPlaneBinary, 'reality-hop', { ...flagsOf(keyed), address: `127.0.0.1:${targetPort}` });
}

/** Enters a hop that leads to an echo. @param keyed with the public key */
export function dialRealityHop(keyed: Keyed, port: number): Promise<unknown> {
  return runOnce(dataPlaneBinary, 'reality-dialler', { ...flagsOf(keyed), address: `127.0.0.1:${port}` });
}

/** Makes all vectors of a folder anew. @returns the differences */
export async function vectorDifferences(folder: string): Promise<unknown> {
  return ((await runOnce(dataPlaneBinary, 'vectors', { folder })) as { readonly differences: unknown }).differences;
}

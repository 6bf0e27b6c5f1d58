/**
 * The agent's state directory: `identity.json`, which names the node that it connects as; the id of a request to join
 * whose answer may be lost; and what `unconfirmed-file.ts` keeps. A file is written under another name, flushed and
 * renamed, so it is whole whenever the process ends. The agent keeps nothing else on disk. Implements
 * `docs/contract/joining.md#the-machines-side`.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { agentKeysFrom } from '../channel/noise/control-psk.js';
import { readEndpoint } from '../channel/reality/endpoint.js';
import { syncFolder, systemErrorCode } from '../kernel/files.js';

const psk = z.string().refine((text) => agentKeysFrom(text).ok);
const identitySchema = z.object({
  node_id: z.string().regex(/^[\x21-\x7e]{1,128}$/),
  control_psk: psk,
  /** The previous PSK, used while the service refuses the new one. */
  former_control_psk: psk.optional(),
  /** As in `SVC_CONTROL_ENDPOINT`. */
  endpoint: z.string().refine((text) => typeof readEndpoint(text) !== 'string'),
});

/** Which node this machine is, where it connects, and with which secret. */
export type Identity = z.output<typeof identitySchema>;

/** The state directory cannot be used; the message is a sentence without secrets. */
export class StateError extends Error {}

const identityFile = 'identity.json';
const requestFile = 'join-request';
const requestBytes = 16;
/** Also identifies drafts that a killed process has left. */
const draftEnding = '.draft';
/** More than either file needs. */
const fileBytesMax = 16 * 1024;

export const identityPath = (folder: string): string => join(folder, identityFile);

/** @returns undefined for a machine that is not a node yet @throws StateError */
export async function readIdentity(folder: string): Promise<Identity | undefined> {
  const text = await read(folder, identityFile, fileBytesMax);
  if (text === undefined) return undefined;
  const parsed = identitySchema.safeParse(jsonOf(text));
  if (parsed.success) return parsed.data;
  // Nothing from the file is quoted: it may be any file.
  const expected = 'expected node_id, control_psk and endpoint';
  throw new StateError(`${identityPath(folder)}: ${expected}; a machine without this file can join anew`);
}

/** @throws StateError */
export async function writeIdentity(folder: string, identity: Identity): Promise<void> {
  await writeFile(folder, identityFile, `${JSON.stringify(identity, undefined, 2)}\n`);
}

/**
 * The id of the request to join, stored on disk: that of an earlier try that did not finish, or a new one.
 * @throws StateError
 */
export async function requestToJoin(
  folder: string,
): Promise<{ readonly requestId: Uint8Array; readonly isRepeated: boolean }> {
  const kept = (await read(folder, requestFile, fileBytesMax))?.trim() ?? '';
  if (/^[0-9a-f]{32}$/.test(kept)) return { requestId: Buffer.from(kept, 'hex'), isRepeated: true };
  const requestId = randomBytes(requestBytes);
  await writeFile(folder, requestFile, `${requestId.toString('hex')}\n`);
  return { requestId, isRepeated: false };
}

export const requestPath = (folder: string): string => join(folder, requestFile);

/** Removes files that are useless once there is an identity, including those that killed processes have left. */
export async function forgetRequest(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  const gone = names.filter((name) => name === requestFile || name.endsWith(draftEnding));
  // Failures do not matter: the machine is a node all the same.
  await Promise.allSettled(gone.map((name) => rm(join(folder, name))));
}

/** The value of a file that may be large; undefined if it is missing, a link, or not JSON. @throws StateError */
export async function readJson(folder: string, name: string): Promise<unknown> {
  return jsonOf((await read(folder, name)) ?? '');
}

/** @throws StateError */
export async function removeFile(folder: string, name: string): Promise<void> {
  try {
    await rm(join(folder, name), { force: true });
    await syncFolder(folder);
  } catch (error) {
    throw unwritable(folder, error);
  }
}

/** @param most bytes to read; by default all @returns undefined if the file is missing or a link */
async function read(folder: string, name: string, most?: number): Promise<string | undefined> {
  const path = join(folder, name);
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  try {
    const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      if (most === undefined) return await file.readFile('utf8');
      const { buffer, bytesRead } = await file.read(Buffer.alloc(most), 0, most, 0);
      return buffer.toString('utf8', 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT' || code === 'ELOOP') return undefined;
    throw new StateError(`${path}: expected a file that this process can read (${code ?? 'unreadable'})`);
  }
}

/** @throws StateError */
export async function writeFile(folder: string, name: string, text: string): Promise<void> {
  const draft = join(folder, `.${name}.${randomBytes(8).toString('hex')}${draftEnding}`);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.writeFile(text);
      // The user of the service is not known here, but owns the directory.
      if (process.geteuid?.() === 0) {
        const { uid, gid } = await stat(folder);
        await file.chown(uid, gid);
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, join(folder, name));
    await syncFolder(folder);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw unwritable(folder, error);
  }
}

function unwritable(folder: string, error: unknown): StateError {
  const code = systemErrorCode(error) ?? 'not writable';
  const otherwise = 'or name another with --state-dir or SVC_AGENT_STATE_DIR';
  return new StateError(`${folder}: expected a directory that this process can write (${code}), ${otherwise}`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

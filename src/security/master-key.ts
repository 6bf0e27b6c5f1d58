/**
 * The master key, which wraps the keyring. Its bytes stay inside the returned capability, so no log, error or dump can
 * show them. Every refusal is one sentence that names the setting or the file. Implements
 * `docs/contract/domain.md#commands-and-events` and `docs/contract/configuration.md#configuration`.
 */
import { hkdfSync, randomBytes } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { xchacha, xchachaNonceBytes } from '../kernel/crypto/crypto.js';
import { createPrivateFile, systemErrorCode } from '../kernel/files.js';
import { err, ok, type Result } from '../kernel/result.js';

const masterKeyBytes = 32;
const salt = 'svc-master-v1';

export interface WrappedBytes {
  readonly nonce: Uint8Array;
  readonly ciphertext: Uint8Array;
}

export interface MasterKey {
  /** Identifies the key without revealing anything about it; safe to log and store. */
  readonly keyId: string;
  wrap(plaintext: Uint8Array, associated: Uint8Array): WrappedBytes;
  /** @returns undefined when the bytes were wrapped with another key, or altered */
  unwrap(wrapped: WrappedBytes, associated: Uint8Array): Uint8Array | undefined;
}

/**
 * Creates the capability from 32 bytes, and overwrites them.
 * @throws RangeError on another length
 * @internal exported for tests
 */
export function createMasterKey(bytes: Uint8Array): MasterKey {
  if (bytes.length !== masterKeyBytes) throw new RangeError(`master key: expected 32 bytes, got ${bytes.length}`);
  const derive = (info: string): Uint8Array => new Uint8Array(hkdfSync('sha256', bytes, salt, info, 32));
  const wrapKey = derive('wrap');
  const keyId = `mk_${Buffer.from(derive('id').subarray(0, 9)).toString('base64url')}`;
  bytes.fill(0);
  return {
    keyId,
    wrap(plaintext, associated) {
      const nonce = randomBytes(xchachaNonceBytes);
      return { nonce, ciphertext: xchacha.seal(wrapKey, nonce, plaintext, associated) };
    },
    unwrap(wrapped, associated) {
      if (wrapped.nonce.length !== xchachaNonceBytes) return undefined;
      return xchacha.open(wrapKey, wrapped.nonce, wrapped.ciphertext, associated);
    },
  };
}

export interface MasterKeySettings {
  /** The value of `SVC_MASTER_KEY`. */
  readonly inline?: string | undefined;
  /** The value of `SVC_MASTER_KEY_FILE`. */
  readonly file?: string | undefined;
  readonly dataDir: string;
  /** False with external stores: the key must then be set explicitly. */
  readonly mayCreate: boolean;
}

export interface LoadedMasterKey {
  readonly masterKey: MasterKey;
  readonly source: 'SVC_MASTER_KEY' | 'SVC_MASTER_KEY_FILE' | 'data folder';
}

const fileName = 'master.key';
/** 32 bytes in base64; the padding may be missing. */
const keyPattern = /^[A-Za-z0-9+/]{43}=?$/;

/** Loads the master key, or creates it where allowed. */
export async function loadMasterKey(settings: MasterKeySettings): Promise<Result<LoadedMasterKey, string>> {
  if (settings.inline !== undefined && settings.file !== undefined) {
    return err('SVC_MASTER_KEY and SVC_MASTER_KEY_FILE are both set: set only one of them');
  }
  if (settings.inline !== undefined) return loaded(settings.inline, 'SVC_MASTER_KEY', 'SVC_MASTER_KEY');
  if (settings.file !== undefined) {
    const label = `SVC_MASTER_KEY_FILE ${settings.file}`;
    const text = await readText(settings.file, label);
    if (!text.ok) return text;
    return text.value === undefined ? err(`${label}: no such file`) : loaded(text.value, label, 'SVC_MASTER_KEY_FILE');
  }
  return loadFromDataFolder(settings);
}

async function loadFromDataFolder(settings: MasterKeySettings): Promise<Result<LoadedMasterKey, string>> {
  const path = join(settings.dataDir, fileName);
  const existing = await readText(path, path);
  if (!existing.ok) return existing;
  if (existing.value !== undefined) return loaded(existing.value, path, 'data folder');
  if (!settings.mayCreate) {
    return err('SVC_MASTER_KEY or SVC_MASTER_KEY_FILE is required: expected 32 bytes in base64');
  }
  try {
    await mkdir(settings.dataDir, { recursive: true, mode: 0o700 });
    await createPrivateFile(path, newMasterKey());
    return loaded(await readFile(path, 'utf8'), path, 'data folder');
  } catch (error) {
    return err(`${path}: the master key could not be created (${codeOf(error)})`);
  }
}

/** A new key, as its file holds it. */
export const newMasterKey = (): string => `${randomBytes(masterKeyBytes).toString('base64')}\n`;

async function readText(path: string, label: string): Promise<Result<string | undefined, string>> {
  try {
    return ok(await readFile(path, 'utf8'));
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? ok(undefined) : err(`${label}: could not be read (${codeOf(error)})`);
  }
}

function loaded(text: string, label: string, source: LoadedMasterKey['source']): Result<LoadedMasterKey, string> {
  const trimmed = text.trim();
  const bytes = keyPattern.test(trimmed) ? Buffer.from(trimmed, 'base64') : undefined;
  if (bytes?.length !== masterKeyBytes) {
    return err(`${label}: expected a master key of 32 bytes in base64, got ${trimmed.length} characters that are not`);
  }
  return ok({ masterKey: createMasterKey(bytes), source });
}

const codeOf = (error: unknown): string => systemErrorCode(error) ?? 'unknown error';

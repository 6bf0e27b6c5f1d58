import { randomBytes } from 'node:crypto';
import { lstat, mkdir, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMasterKey, loadMasterKey } from '../../src/security/master-key.js';
import { valueOf } from '../support/noise-parties.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-master-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

const base64 = (): string => randomBytes(32).toString('base64');

describe('the master key', () => {
  it('is created once, readable only by its owner, in a folder that may not exist yet', async () => {
    const dataDir = join(root, 'a', 'b');
    const first = valueOf(await loadMasterKey({ dataDir, mayCreate: true }));
    expect(first).toMatchObject({ source: 'data folder' });
    expect((await stat(join(dataDir, 'master.key'))).mode & 0o777).toBe(0o600);
    expect(Buffer.from((await readFile(join(dataDir, 'master.key'), 'utf8')).trim(), 'base64').length).toBe(32);
    expect(await readdir(dataDir)).toEqual(['master.key']);
    const second = valueOf(await loadMasterKey({ dataDir, mayCreate: true }));
    expect(second.masterKey.keyId).toBe(first.masterKey.keyId);
  });

  it('is the same for all processes that create it at the same time', async () => {
    const dataDir = join(root, 'race');
    const loads = await Promise.all(Array.from({ length: 8 }, () => loadMasterKey({ dataDir, mayCreate: true })));
    const ids = new Set(loads.map((load) => valueOf(load).masterKey.keyId));
    expect(ids.size).toBe(1);
  });

  it('takes the place of nothing that came there meanwhile', async () => {
    const dataDir = join(root, 'taken');
    const file = join(dataDir, 'master.key');
    await mkdir(dataDir);
    // Absent for a reader, and present for whoever wants to create it.
    await symlink(join(root, 'nowhere'), file);
    expect(await loadMasterKey({ dataDir, mayCreate: true })).toMatchObject({ ok: false });
    expect((await lstat(file)).isSymbolicLink()).toBe(true);
  });

  it('comes from the environment or a file, never from both, and is not created when it must be given', async () => {
    const key = base64();
    const file = join(root, 'given.key');
    await writeFile(file, `${key}\n`);
    const dataDir = join(root, 'untouched');
    const inline = valueOf(await loadMasterKey({ inline: key, dataDir, mayCreate: false }));
    const fromFile = valueOf(await loadMasterKey({ file, dataDir, mayCreate: false }));
    const unpadded = valueOf(await loadMasterKey({ inline: key.replace('=', ''), dataDir, mayCreate: false }));
    expect(new Set([inline, fromFile, unpadded].map((load) => load.masterKey.keyId)).size).toBe(1);
    expect([inline, fromFile].map(({ source }) => source)).toEqual(['SVC_MASTER_KEY', 'SVC_MASTER_KEY_FILE']);
    expect(await loadMasterKey({ inline: key, file, dataDir, mayCreate: true })).toMatchObject({ ok: false });
    const failing = async (path: string): Promise<unknown> => loadMasterKey({ file: path, dataDir, mayCreate: true });
    const label = (path: string): string => `SVC_MASTER_KEY_FILE ${path}`;
    const absent = join(root, 'absent');
    expect(await failing(absent)).toEqual({ ok: false, error: `${label(absent)}: no such file` });
    expect(await failing(root)).toEqual({ ok: false, error: `${label(root)}: could not be read (EISDIR)` });
    expect(await loadMasterKey({ dataDir, mayCreate: false })).toMatchObject({ ok: false });
    await expect(stat(dataDir)).rejects.toThrow();
  });

  it('is read from the data folder where it must be given, too', async () => {
    const dataDir = join(root, 'kept');
    const { masterKey } = valueOf(await loadMasterKey({ dataDir, mayCreate: true }));
    expect(valueOf(await loadMasterKey({ dataDir, mayCreate: false })).masterKey.keyId).toBe(masterKey.keyId);
  });

  it('is refused when its place cannot be read or written, with the reason of the system', async () => {
    const unreadable = join(root, 'unreadable');
    await mkdir(join(unreadable, 'master.key'), { recursive: true });
    expect(await loadMasterKey({ dataDir: unreadable, mayCreate: true })).toEqual({
      ok: false,
      error: `${join(unreadable, 'master.key')}: could not be read (EISDIR)`,
    });
    const dangling = join(root, 'dangling');
    await symlink(join(root, 'nowhere', 'at all'), dangling);
    const result = await loadMasterKey({ dataDir: dangling, mayCreate: true });
    expect(result.ok ? '' : result.error).toMatch(
      /dangling\/master\.key: the master key could not be created \(E\w+\)$/,
    );
  });

  it('has 32 bytes', () => {
    for (const length of [31, 33]) {
      expect(() => createMasterKey(new Uint8Array(length))).toThrow(`expected 32 bytes, got ${length}`);
    }
  });

  it('unwraps nothing with a nonce of another length', () => {
    const masterKey = createMasterKey(randomBytes(32));
    const wrapped = masterKey.wrap(randomBytes(32), new Uint8Array(0));
    expect(masterKey.unwrap({ ...wrapped, nonce: wrapped.nonce.subarray(1) }, new Uint8Array(0))).toBeUndefined();
  });

  it('is refused when malformed, without showing any of it', async () => {
    const malformed = fc.oneof(
      fc.string({ minLength: 6, maxLength: 60 }),
      fc.uint8Array({ minLength: 5, maxLength: 64 }).map((bytes) => Buffer.from(bytes).toString('base64')),
      fc.constant(`${base64()}A`),
      fc.constant(randomBytes(32).toString('hex')),
    );
    await fc.assert(
      fc.asyncProperty(malformed, async (inline) => {
        const result = await loadMasterKey({ inline, dataDir: root, mayCreate: true });
        if (result.ok) return Buffer.from(inline, 'base64').length === 32;
        const piece = inline.trim().slice(0, 12);
        return result.error.startsWith('SVC_MASTER_KEY') && (piece.length < 6 || !result.error.includes(piece));
      }),
    );
  });

  it('never shows its bytes in an object dump', () => {
    const bytes = randomBytes(32);
    const masterKey = createMasterKey(Uint8Array.from(bytes));
    const dumps = inspect(masterKey, { depth: 9, showHidden: true });
    for (const form of ['base64', 'base64url', 'hex'] as const) {
      expect(dumps).not.toContain(bytes.toString(form).slice(0, 10));
    }
  });
});

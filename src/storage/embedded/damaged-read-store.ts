/**
 * Sets a damaged read store aside. LMDB maps its file into memory and trusts it, so reading a damaged file crashes the
 * process; the read store is then rebuilt from the log. Each close leaves a note of the file's state. Without a
 * matching note, as after a crash or an outside write, a separate process first reads the whole file. Implements
 * `docs/contract/domain.md#commands-and-events`, the read store is disposable.
 */
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../kernel/logger.js';

/** A store that takes longer to read counts as sound: a start must not wait for that. */
const readMs = 10_000;

const noteOf = (path: string): string => join(path, 'closed');

/** The size and the time of the data file; undefined when there is none. */
async function stateOf(path: string): Promise<string | undefined> {
  const file = await stat(join(path, 'data.mdb'), { bigint: true }).catch(() => undefined);
  return file === undefined ? undefined : `${file.size} ${file.mtimeNs}\n`;
}

/** Notes that the read store in the folder `path` was closed. Without the note, the next start takes a little longer. */
export async function noteClosed(path: string): Promise<void> {
  const state = await stateOf(path);
  if (state !== undefined) await writeFile(noteOf(path), state, { mode: 0o600 }).catch(() => undefined);
}

/** Renames the folder `path` if the read store in it is damaged. Call it before the store is opened. */
export async function setAsideIfDamaged(path: string, logger: Logger): Promise<void> {
  const state = await stateOf(path);
  const noted = await readFile(noteOf(path), 'utf8').catch(() => undefined);
  // From here on, only a close leaves a note.
  await rm(noteOf(path), { force: true });
  if (state === undefined || state === noted) return;
  const cause = await damageOf(path);
  if (cause === undefined) return;
  const aside = `${path}.damaged-${new Date().toISOString().replaceAll(':', '-')}`;
  await rename(path, aside);
  logger.error(
    { path, set_aside: aside, cause },
    'the read store is damaged; it is set aside and made anew from the log',
  );
}

/** The exit code of a process in which the library reported damage: by a negative code, unlike system errors. */
const damagedCode = 9;
const crashes: readonly (string | null)[] = ['SIGSEGV', 'SIGBUS', 'SIGABRT', 'SIGILL', 'SIGFPE', 'SIGTRAP'];

/** Plain JavaScript, because it runs without a compiler. Arguments: the library, the folder. */
const readAll = `
  const [, library, path] = process.argv;
  const { open } = require(library);
  const options = { encoding: 'binary', keyEncoding: 'binary' };
  try {
    const root = open({ path, noSubdir: false, readOnly: true, maxDbs: 32, ...options });
    for (const key of [...root.getKeys()]) {
      for (const { value } of root.openDB(Buffer.from(key).toString(), options).getRange()) value.at(-1);
    }
  } catch (error) {
    console.error(String(error), error.code);
    process.exit(error.code < 0 ? ${damagedCode} : 1);
  }
`;

/** Reads the whole store in another process. @returns the damage found; undefined if there is none, or time ran out */
async function damageOf(path: string): Promise<string | undefined> {
  const library = createRequire(import.meta.url).resolve('lmdb');
  // It gets no settings, which include secrets.
  const child = spawn(process.execPath, ['-e', readAll, library, path], {
    env: {},
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said = `${said}${text}`.slice(0, 2_000)));
  const timer = setTimeout(() => child.kill('SIGKILL'), readMs);
  const [code, signal] = await new Promise<readonly [code: number | null, signal: string | null]>((resolve) => {
    child.once('error', () => resolve([0, null]));
    child.once('close', (...end) => resolve(end));
  });
  clearTimeout(timer);
  if (crashes.includes(signal)) return `reading it ends a process with ${signal}`;
  return code === damagedCode ? said.trim() : undefined;
}

/**
 * Files for what is shown once: they are made before it is asked for, so that nothing is lost to a full name, a folder that
 * cannot be written or a name that is taken. Implements `docs/contract/automation.md#the-command-line-svcctl`, `--psk-dir`.
 */
import { createHash, randomUUID } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { usage } from '../exit.js';

/** Bytes that a name may have on the file systems that matter, less those of the name while it is written. */
const nameBytes = 255 - 40;

/** A file name for a name of the fleet: readable, the same each time, and never too long. */
export function fileNameOf(name: string, ending: string): string {
  // What begins with an underscore is a name of ours.
  const encoded = encodeURIComponent(name).replace(/^_/, '%5F');
  if (Buffer.byteLength(encoded + ending) <= nameBytes) return encoded + ending;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 16);
  const short = encoded.slice(0, nameBytes - ending.length - hash.length - 1).replace(/%[0-9A-F]?$/, '');
  return `${short}-${hash}${ending}`;
}

export interface PreparedFile {
  readonly path: string;
  /** Writes it for good. @throws Error when it cannot be kept */
  keep(text: string): void;
  /** Leaves no trace of one that is not needed. */
  drop(): void;
}

/** As many bytes as an environment file needs, taken before. */
const reserved = Buffer.alloc(4096, '\n');

/** @param ending `.env` @throws Failure usage when the file could not be kept */
export function prepareFile(folder: string, name: string, ending: string): PreparedFile {
  const path = join(folder, fileNameOf(name, ending));
  const fresh = join(folder, `.${randomUUID()}.svcctl`);
  let file: number | undefined;
  const close = (): void => {
    if (file !== undefined) closeSync(file);
    file = undefined;
  };
  const drop = (): void => {
    close();
    rmSync(fresh, { force: true });
  };
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true) throw new Error('it is a folder');
    file = openSync(fresh, 'wx', 0o600);
    writeSync(file, reserved);
    fsyncSync(file);
  } catch (error) {
    try {
      drop();
    } catch {
      // What could not be made need not go.
    }
    throw usage(`--psk-dir: ${path}: ${(error as Error).message}`);
  }
  return {
    path,
    drop,
    keep(text) {
      if (file === undefined) throw new Error('the file is closed');
      try {
        writeSync(file, text, 0);
        ftruncateSync(file, Buffer.byteLength(text));
        fsyncSync(file);
        close();
        renameSync(fresh, path);
      } catch (error) {
        drop();
        throw error;
      }
    },
  };
}

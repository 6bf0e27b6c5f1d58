/**
 * The packages with native code, and what they need, for the Linux platforms of a release: from `node_modules` where npm has
 * installed them, else from the registry that npm is configured with, as package-lock.json names them by version and hash.
 */
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { native } from './bundle.js';

/** What they need only on another runtime, or only to be compiled. */
const leftOut = ['bare-assert', 'node-addon-api'];

/** In the words of npm. */
export interface Platforms {
  readonly cpu: readonly string[];
  readonly libc: readonly string[];
}

export const allPlatforms: Platforms = { cpu: ['x64', 'arm64'], libc: ['glibc', 'musl'] };

/** A package is neither installed nor available. */
export class NativesMissingError extends Error {}

interface Locked {
  readonly version: string;
  readonly integrity?: string;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

type Lock = ReadonlyMap<string, Locked>;

function readLock(root: string): Lock {
  const text = readFileSync(join(root, 'package-lock.json'), 'utf8');
  const { packages } = JSON.parse(text) as { readonly packages: Readonly<Record<string, Locked>> };
  return new Map(Object.entries(packages));
}

const lockedAt = (lock: Lock, name: string): Locked => {
  const found = lock.get(`node_modules/${name}`);
  if (found === undefined) throw new Error(`package-lock.json: expected ${name}`);
  return found;
};

/** The names of the packages with native code and of everything that they need on these platforms, sorted. */
function neededOn({ cpu, libc }: Platforms, lock: Lock): readonly string[] {
  const fits = (wanted: readonly string[] | undefined, has: readonly string[]): boolean =>
    wanted === undefined || wanted.some((one) => has.includes(one));
  const needed = new Set<string>();
  const add = (name: string): void => {
    const locked = lockedAt(lock, name);
    const belongs = fits(locked.os, ['linux']) && fits(locked.cpu, cpu) && fits(locked.libc, libc);
    if (needed.has(name) || leftOut.includes(name) || !belongs) return;
    needed.add(name);
    for (const more of Object.keys({ ...locked.dependencies, ...locked.optionalDependencies })) add(more);
  };
  for (const name of native) add(name);
  return [...needed].sort();
}

/**
 * Copies the packages into `node_modules` of `folder`, without sources, types and other platforms.
 * @returns the folders that they came from @throws NativesMissingError
 */
export async function copyNatives(root: string, folder: string, platforms: Platforms): Promise<readonly string[]> {
  const lock = readLock(root);
  const names = neededOn(platforms, lock);
  const sources = await foldersOf(root, names, lock);
  for (const [name, source] of sources) {
    const filter = (path: string): boolean => isNeeded(relative(source, path), platforms);
    await cp(source, join(folder, 'node_modules', name), { recursive: true, filter });
  }
  return [...sources.values()];
}

/** Folders of packages that hold no program for Node, such as the sources of native code. */
const withoutPrograms = /^(bin|dependencies|deps|extensions|node_modules|scripts|src|tests?)(\/|$)/;

function isNeeded(path: string, { cpu, libc }: Platforms): boolean {
  if (withoutPrograms.test(path)) return false;
  const [prebuilds, platform] = path.split('/');
  if (prebuilds === 'prebuilds' && platform !== undefined && !cpu.some((one) => platform === `linux-${one}`))
    return false;
  if (path.endsWith('.node')) return libc.includes(path.includes('musl') ? 'musl' : 'glibc');
  const name = basename(path);
  return !name.includes('.') || /\.(cjs|mjs|js|json)$|^dict\.txt$|^licen[cs]e|^notice/i.test(name);
}

/** Where each package is: installed, or downloaded into `dist/natives`. */
async function foldersOf(root: string, names: readonly string[], lock: Lock): Promise<ReadonlyMap<string, string>> {
  const cache = join(root, 'dist', 'natives');
  mkdirSync(cache, { recursive: true });
  const installedIn = (name: string): string => join(root, 'node_modules', name);
  const absent = names.filter((name) => !existsSync(installedIn(name)));
  const archives = await download(cache, absent, lock);
  const folders = new Map(names.map((name) => [name, installedIn(name)]));
  for (const [name, archive] of archives) {
    const folder = archive.replace(/\.tgz$/, '');
    await rm(folder, { recursive: true, force: true });
    mkdirSync(folder);
    execFileSync('tar', ['--extract', `--file=${archive}`, `--directory=${folder}`, '--strip-components=1']);
    folders.set(name, folder);
  }
  return folders;
}

const downloadMs = 120_000;
/** In milliseconds: short, so that it soon says that there is no network. */
const fewTries = ['--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=5000'];

/** Downloads, by npm, what is not yet in `cache`, and checks all of it against the lock. @returns archives by name */
async function download(cache: string, names: readonly string[], lock: Lock): Promise<ReadonlyMap<string, string>> {
  const fileOf = (name: string): string =>
    join(cache, `${name.replace('@', '').replace('/', '-')}-${lockedAt(lock, name).version}.tgz`);
  const missing = names.filter((name) => !existsSync(fileOf(name)));
  if (missing.length > 0) {
    const fresh = await mkdtemp(join(cache, 'fresh-'));
    const specs = missing.map((name) => `${name}@${lockedAt(lock, name).version}`);
    const args = ['pack', ...specs, '--pack-destination', fresh, '--prefer-offline', '--loglevel=error', ...fewTries];
    try {
      await promisify(execFile)('npm', args, { cwd: fresh, timeout: downloadMs });
      for (const name of readdirSync(fresh)) await cp(join(fresh, name), join(cache, name));
    } catch (error) {
      const [why = ''] = error instanceof Error && 'stderr' in error ? String(error.stderr).split('\n') : [];
      throw new NativesMissingError(`npm could not download ${specs.join(', ')}${why === '' ? '' : `: ${why}`}`);
    } finally {
      await rm(fresh, { recursive: true });
    }
  }
  for (const name of names) {
    const { integrity } = lockedAt(lock, name);
    const hash = `sha512-${createHash('sha512')
      .update(readFileSync(fileOf(name)))
      .digest('base64')}`;
    if (hash !== integrity)
      throw new Error(`${fileOf(name)}: expected ${integrity}, as package-lock.json has it, got ${hash}`);
  }
  return new Map(names.map((name) => [name, fileOf(name)]));
}

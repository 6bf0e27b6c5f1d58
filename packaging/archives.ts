/** Archives of folders, the same bytes for the same content: sorted, with fixed modes, owners and times. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, lutimesSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** Paths of files and links below a folder, from it, sorted. */
export function filesBelow(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
    .sort();
}

/**
 * Sets modes and times. Programs are files that begin with `#!`.
 * @param seconds since 1970, the time of everything below `folder`
 */
function settle(folder: string, seconds: number): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) settle(path, seconds);
    else if (entry.isFile()) chmodSync(path, readFileSync(path).toString('latin1', 0, 2) === '#!' ? 0o755 : 0o644);
    lutimesSync(path, seconds, seconds);
  }
  chmodSync(folder, 0o755);
  lutimesSync(folder, seconds, seconds);
}

/** @param folder of one package of npm @param file the archive to write */
export function npmArchive(folder: string, file: string, seconds: number): void {
  settle(folder, seconds);
  const owners = ['--owner=0', '--group=0', '--numeric-owner'];
  const files = ['--no-recursion', '--transform=s,^,package/,', '--files-from=-'];
  execFileSync('tar', ['--create', '--format=ustar', ...owners, `--file=${file}`, ...files], {
    cwd: folder,
    input: filesBelow(folder).join('\n'),
    timeout: packMs,
  });
  writeFileSync(file, gzipSync(readFileSync(file)));
}

const packMs = 120_000;

/** @param folder as it will be installed, with `DEBIAN` in it @param file the archive to write */
export function debianArchive(folder: string, file: string, seconds: number): void {
  settle(folder, seconds);
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zgzip', '-z6', '--build', folder, file], {
    env: { PATH: process.env['PATH'], SOURCE_DATE_EPOCH: String(seconds), LC_ALL: 'C' },
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: packMs,
  });
}

/** Writes SHA256SUMS of the files of a folder, as `sha256sum --check` takes it. */
export function writeSums(folder: string): void {
  const lines = readdirSync(folder)
    .sort()
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex')}  ${name}\n`,
    );
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''));
}

/**
 * Part of `npm run build`: writes the commit that the build is made from into `dist/commit`. Plain JavaScript, because a
 * clone builds the command line before anything is compiled.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { argv, env } from 'node:process';
import { fileURLToPath } from 'node:url';

/**
 * The commit of a clone, twelve digits, with `-dirty` if files differ from it. Elsewhere what `BUILD_COMMIT` says, as in an
 * image, whose build sees no repository; else `unknown`.
 */
export function commitOf(root) {
  const git = (...args) =>
    execFileSync('git', ['-C', root, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    // A tree inside the clone of something else is not of its commit.
    if (realpathSync(git('rev-parse', '--show-toplevel')) !== realpathSync(root)) throw new Error('no clone');
    const commit = git('rev-parse', '--short=12', 'HEAD');
    return git('status', '--porcelain') === '' ? commit : `${commit}-dirty`;
  } catch {
    return env.BUILD_COMMIT || 'unknown';
  }
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const root = dirname(dirname(argv[1]));
  mkdirSync(join(root, 'dist'), { recursive: true });
  writeFileSync(join(root, 'dist', 'commit'), `${commitOf(root)}\n`);
}

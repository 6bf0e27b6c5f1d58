/**
 * Bundles the service with its maintenance commands, as it is in a package: ECMAScript modules in one folder, since threads
 * are found beside the module that starts them. Packages with native code stay outside; `natives.ts` has those.
 */
import { build, type BuildOptions } from 'esbuild';
import { version } from '../src/kernel/version.js';

/** Packages with native code. */
export const native = ['lmdb', '@node-rs/argon2', 'sodium-native'];

/** The MongoDB driver looks for this one; the project does not use it. @internal exported for tests */
export const unused = ['mongodb-client-encryption'];

/** For ECMAScript modules: packages in CommonJS expect these. @internal exported for tests */
export const banner = `
import { createRequire as bundleCreateRequire } from 'node:module';
import { dirname as bundleDirname } from 'node:path';
import { fileURLToPath as bundleFileUrlToPath } from 'node:url';
const require = bundleCreateRequire(import.meta.url);
const __filename = bundleFileUrlToPath(import.meta.url);
const __dirname = bundleDirname(__filename);
`;

const programs = {
  'gateway-control': 'scripts/gateway-control.ts',
  worker: 'src/projections/history/worker.ts',
  'archive-thread': 'src/backups/archive-thread.ts',
  'texts-worker': 'src/transport/rest/fleet-file/texts-worker.ts',
};

/** @param outdir the folder to write @returns the paths of what is in it, from `root` @throws Error of the compiler */
export async function bundleService(root: string, outdir: string, commit: string): Promise<readonly string[]> {
  const options = {
    absWorkingDir: root,
    entryPoints: programs,
    outdir,
    bundle: true,
    splitting: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    keepNames: true,
    external: [...native, ...unused],
    banner: { js: banner },
    define: { PRODUCT_VERSION: JSON.stringify(version), PRODUCT_COMMIT: JSON.stringify(commit) },
    legalComments: 'none',
    metafile: true,
    logLevel: 'error',
  } as const satisfies BuildOptions;
  const { metafile } = await build(options);
  return Object.keys(metafile.inputs);
}

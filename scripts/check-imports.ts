/**
 * Part of `npm run lint`: checks every source file against the import table (import-table.ts), prints the forbidden
 * imports and exits with 1 if there are any.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { argv, exit, stdout } from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { checkFile, folderCycles, type DeclaredPackages, type Violation } from './import-table.js';

/** Folders whose subfolders may not import one another in circles. */
const LAYERED: readonly string[] = ['src/domain', 'src/transport/rest', 'cli/src'];

const FOLDERS: readonly string[] = ['src', 'scripts', 'packaging', 'test', 'bench', 'console', 'cli'];

function sourceFiles(root: string, folder: string): readonly string[] {
  let entries;
  try {
    entries = readdirSync(join(root, folder), { withFileTypes: true });
  } catch (error) {
    // A checkout may lack one of the folders.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
  return entries.flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    // A workspace has its own packages.
    if (entry.name === 'node_modules') return [];
    if (entry.isDirectory()) return sourceFiles(root, path);
    return /\.[cm]?tsx?$/.test(entry.name) ? [path] : [];
  });
}

interface Manifest {
  readonly dependencies?: object;
  readonly devDependencies?: object;
  readonly workspaces?: readonly string[];
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}

/** The packages that the project's files may import, and those of a workspace in addition. */
function declaredPackages(root: string): (path: string) => DeclaredPackages {
  const { dependencies = {}, devDependencies = {}, workspaces = [] } = manifestOf(root);
  const whole = { runtime: new Set(Object.keys(dependencies)), development: new Set(Object.keys(devDependencies)) };
  const own = workspaces.map((workspace) => {
    const names = Object.keys(manifestOf(join(root, workspace)).devDependencies ?? {});
    return [`${workspace}/`, { ...whole, development: new Set([...whole.development, ...names]) }] as const;
  });
  return (path) => own.find(([folder]) => path.startsWith(folder))?.[1] ?? whole;
}

/**
 * Checks the whole tree.
 * @param root folder of package.json
 * @returns how many files were read, every forbidden import, and the cycles between folders as sentences
 */
export function checkTree(root: string): {
  readonly files: number;
  readonly violations: readonly Violation[];
  readonly cycles: readonly string[];
} {
  const declared = declaredPackages(root);
  const files = FOLDERS.flatMap((folder) => sourceFiles(root, folder)).map((path) => ({
    path,
    source: readFileSync(join(root, path), 'utf8'),
  }));
  const violations = files.flatMap(({ path, source }) => checkFile(path, source, declared(path)));
  const cycles = LAYERED.flatMap((layered) =>
    folderCycles(layered, files).map((cycle) => `${layered}: import cycle between folders: ${cycle.join(' → ')}`),
  );
  return { files: files.length, violations, cycles };
}

function main(): void {
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  const { files, violations, cycles } = checkTree(root);
  for (const { file, line, specifier, reason } of violations) {
    stdout.write(`${file}:${line}: ${specifier === '' ? '' : `'${specifier}': `}${reason}\n`);
  }
  for (const cycle of cycles) stdout.write(`${cycle}\n`);
  stdout.write(
    `import table: ${files} files, ${violations.length} forbidden imports, ${cycles.length} cycles between folders\n`,
  );
  if (violations.length + cycles.length > 0) exit(1);
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) main();

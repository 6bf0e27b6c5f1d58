/**
 * Which part of the program may import which: the import table as data, and the check of one file against it. Pure:
 * check-imports.ts reads the tree. The parts are those of `docs/architecture.md`.
 *
 * Not an oxlint rule: those match the text of a specifier, not the folder that a relative path leads to.
 */
import { posix } from 'node:path';
import { isBuiltin } from 'node:module';

/** Each part of src/ with the other parts that it may import. A part may always import itself. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  kernel: [],
  gen: [],
  domain: ['kernel'],
  storage: ['kernel'],
  security: ['domain', 'storage', 'channel', 'kernel'],
  channel: ['kernel'],
  commands: ['domain', 'storage', 'security', 'kernel'],
  accounts: ['domain', 'commands', 'projections', 'storage', 'security', 'kernel'],
  projections: ['domain', 'security', 'storage', 'kernel'],
  delivery: ['domain', 'projections', 'security', 'storage', 'gen', 'kernel'],
  feed: ['domain', 'projections', 'storage', 'kernel'],
  notices: ['domain', 'feed', 'kernel'],
  webhooks: ['domain', 'commands', 'feed', 'notices', 'security', 'storage', 'kernel'],
  backups: ['domain', 'commands', 'security', 'storage', 'kernel'],
  reports: ['domain', 'projections', 'storage', 'gen', 'kernel'],
  status: ['domain', 'projections', 'reports', 'storage', 'kernel'],
  rollouts: ['domain', 'commands', 'reports', 'storage', 'kernel'],
  instance: ['storage', 'reports', 'kernel'],
  app: [
    'domain',
    'commands',
    'accounts',
    'projections',
    'delivery',
    'feed',
    'webhooks',
    'backups',
    'reports',
    'status',
    'rollouts',
    'instance',
    'storage',
    'security',
    'channel',
    'transport/rest',
    'transport/agent',
    'transport/listener',
    'kernel',
  ],
  'transport/rest': [
    'domain',
    'commands',
    'projections',
    'delivery',
    'feed',
    'webhooks',
    'backups',
    'reports',
    'status',
    'kernel',
  ],
  'transport/agent': [
    'channel',
    'transport/listener',
    'domain',
    'delivery',
    'reports',
    'instance',
    'commands',
    'security',
    'gen',
    'kernel',
  ],
  'transport/listener': ['channel', 'kernel'],
  agent: ['channel', 'gen', 'transport/listener', 'kernel'],
};

/** The sources of the programs that use the service only through its API. */
const WORKSPACES: readonly string[] = ['console/src/', 'cli/src/'];

/** Files directly in src/, which start a program and may import all parts. */
const WIRING: readonly string[] = ['src/main.ts'];

/** Parts that import no package and no Node module. */
const PURE: readonly string[] = ['domain'];

/** Packages that only some parts may import. A key that ends in a slash stands for all packages of a scope. */
const HIDDEN: Readonly<Record<string, readonly string[]>> = {
  lmdb: ['storage'],
  mongodb: ['storage'],
  '@eventstore/db-client': ['storage'],
  'sodium-native': ['kernel'],
  '@peculiar/': ['security'],
  'reflect-metadata': ['security'],
  fastify: ['transport/rest'],
  '@fastify/': ['transport/rest'],
  '@grpc/grpc-js': ['agent', 'gen', 'storage'],
};

/** Names of the packages that package.json lists. */
export interface DeclaredPackages {
  readonly runtime: ReadonlySet<string>;
  readonly development: ReadonlySet<string>;
}

/** One import that the table forbids. */
export interface Violation {
  readonly file: string;
  readonly line: number;
  readonly specifier: string;
  readonly reason: string;
}

interface Import {
  readonly specifier: string;
  readonly line: number;
}

/**
 * Blanks out comments and template literals, because an import inside one is only text. Plain strings stay, because
 * specifiers are strings, and line breaks stay to keep line numbers right.
 */
function withoutComments(source: string): string {
  const blank = (text: string): string => text.replace(/[^\n]/g, ' ');
  // Strings come first in the alternation: "//" inside a string does not start a comment.
  return source.replace(
    /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g,
    (token) => (token.startsWith("'") || token.startsWith('"') ? token : blank(token)),
  );
}

function importsOf(source: string): readonly Import[] {
  const code = withoutComments(source);
  const imports: Import[] = [];
  const forms = [
    // import … from 'x', export … from 'x', import 'x'
    /^[ \t]*(?:import|export)\b(?:[^'"();=]*?\bfrom)?\s*(?:'([^']+)'|"([^"]+)")/gm,
    // import('x'), also as a type; require('x')
    /\b(?:import|require)\s*\(\s*(?:'([^']+)'|"([^"]+)")/g,
  ];
  for (const form of forms) {
    for (const match of code.matchAll(form)) {
      const specifier = match[1] ?? match[2];
      if (specifier === undefined) continue;
      const upTo = code.slice(0, match.index + match[0].length);
      imports.push({ specifier, line: upTo.split('\n').length });
    }
  }
  return imports;
}

/** One file of the tree. */
export interface SourceFile {
  /** From the project's root, with forward slashes. */
  readonly path: string;
  readonly source: string;
}

/**
 * Import cycles between the folders directly below one folder. Type imports count too: a cycle of types is a cycle of
 * ideas.
 * @param root folder whose subfolders are checked, for example `src/domain`
 * @returns each cycle once, as the folders along it, with the first one repeated at the end
 */
export function folderCycles(root: string, files: readonly SourceFile[]): readonly (readonly string[])[] {
  const folderOf = (path: string): string | undefined =>
    path.startsWith(`${root}/`) ? path.slice(root.length + 1).split('/')[0] : undefined;
  const imports = new Map<string, Set<string>>();
  for (const { path, source } of files) {
    const folder = folderOf(path);
    if (folder === undefined) continue;
    const targets = imports.get(folder) ?? new Set();
    imports.set(folder, targets);
    for (const { specifier } of importsOf(source)) {
      const target = folderOf(posix.normalize(posix.join(posix.dirname(path), specifier)));
      if (specifier.startsWith('.') && target !== undefined && target !== folder) targets.add(target);
    }
  }
  return cyclesIn(imports);
}

function cyclesIn(graph: ReadonlyMap<string, ReadonlySet<string>>): readonly (readonly string[])[] {
  const cycles: (readonly string[])[] = [];
  const finished = new Set<string>();
  const walk = (node: string, path: readonly string[]): void => {
    const at = path.indexOf(node);
    if (at !== -1) cycles.push([...path.slice(at), node]);
    if (at !== -1 || finished.has(node)) return;
    for (const next of [...(graph.get(node) ?? [])].sort()) walk(next, [...path, node]);
    finished.add(node);
  };
  for (const node of [...graph.keys()].sort()) walk(node, []);
  return cycles;
}

/** The part that a path in src/ belongs to, or null when no row of the table covers it. */
function partOf(path: string): string | null {
  const inside = path.slice('src/'.length);
  return Object.keys(PARTS).find((part) => inside.startsWith(`${part}/`)) ?? null;
}

function packageName(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function judgePackage(file: string, part: string | null, specifier: string, declared: DeclaredPackages): string | null {
  if (part !== null && PURE.includes(part)) return `src/${part} is pure: it imports no package and no module of Node`;
  if (isBuiltin(specifier)) {
    return specifier.startsWith('node:') ? null : `write node:${specifier} for a module of Node`;
  }
  const name = packageName(specifier);
  // Scripts are shipped with the build and run where development dependencies are not installed.
  const shipped = file.startsWith('src/') || file.startsWith('scripts/');
  if (!declared.runtime.has(name)) {
    if (shipped || !declared.development.has(name)) {
      return `package.json does not list ${name} among its ${shipped ? 'dependencies' : 'packages'}`;
    }
  }
  const owners = Object.entries(HIDDEN).find(([key]) => (key.endsWith('/') ? name.startsWith(key) : name === key))?.[1];
  if (part !== null && owners !== undefined && !owners.includes(part)) {
    return `only src/${owners.join(', src/')} may import ${name}`;
  }
  return null;
}

function judgeRelative(file: string, part: string | null, specifier: string): string | null {
  const target = posix.normalize(posix.join(posix.dirname(file), specifier));
  const workspace = WORKSPACES.find((sources) => file.startsWith(sources));
  if (workspace !== undefined) return judgeInWorkspace(file, target, workspace);
  if (!file.startsWith('src/')) return null;
  if (!target.startsWith('src/')) return 'src imports nothing from outside src';
  if (part === null) return null; // a wiring file
  const targetPart = partOf(target);
  if (targetPart === null) return `src/${part} does not import the wiring of the program`;
  if (targetPart === part) return null;
  const allowed = PARTS[part] ?? [];
  if (allowed.includes(targetPart)) return null;
  const others = allowed.length === 0 ? 'no other part' : allowed.join(', ');
  return `src/${part} may import ${others}; not ${targetPart}`;
}

function judgeInWorkspace(file: string, target: string, workspace: string): string | null {
  if (!target.startsWith(workspace))
    return `${workspace} imports nothing from outside it: it knows the service by its API`;
  if (workspace !== 'console/src/') return null;
  const [own, other] = [file, target].map((path) => path.slice(workspace.length).split('/')[0]);
  if (own === 'app' || other === own || other === 'shared') return null;
  return `console/src/${own} may import console/src/shared; not ${other}`;
}

/**
 * Checks one file against the table.
 * @param file path from the project's root, with forward slashes
 * @param source its text
 * @param declared the packages that package.json lists
 * @returns the forbidden imports, by form and line; empty when the file is clean
 */
export function checkFile(file: string, source: string, declared: DeclaredPackages): readonly Violation[] {
  const violations: Violation[] = [];
  const part = file.startsWith('src/') ? partOf(file) : null;
  if (file.startsWith('src/') && part === null && !WIRING.includes(file)) {
    violations.push({ file, line: 1, specifier: '', reason: 'no row of the import table covers this file' });
    return violations;
  }
  for (const { specifier, line } of importsOf(source)) {
    const reason = specifier.startsWith('.')
      ? judgeRelative(file, part, specifier)
      : judgePackage(file, part, specifier, declared);
    if (reason !== null) violations.push({ file, line, specifier, reason });
  }
  if (part !== null && PURE.includes(part)) {
    for (const match of withoutComments(source).matchAll(/\bnew\s+Date\s*\(\s*\)|\bnew\s+Date\b(?!\s*\()/g)) {
      const line = source.slice(0, match.index).split('\n').length;
      violations.push({
        file,
        line,
        specifier: match[0],
        reason: `src/${part} has no clock: it gets the time as a value`,
      });
    }
  }
  return violations;
}

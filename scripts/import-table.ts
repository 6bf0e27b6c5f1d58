/**
 * Which part of the program may import which: the import table as data, and the check of one file against it.
 * Pure: reading the tree is check-imports.ts. Order of parts and rows is that of the architecture.
 *
 * Lint rules of oxlint know patterns of specifiers, not the folder that a relative path leads to, so the table is
 * enforced here.
 */
import { posix } from 'node:path';
import { isBuiltin } from 'node:module';

/** A part of src/ and the other parts that it may import. A part may always import itself. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  kernel: [],
  gen: [],
  domain: ['kernel'],
  storage: ['kernel'],
  security: ['kernel'],
  noise: ['kernel'],
  commands: ['domain', 'storage', 'security', 'kernel'],
  accounts: ['domain', 'commands', 'storage', 'security', 'kernel'],
  projections: ['domain', 'storage', 'kernel'],
  delivery: ['domain', 'security', 'storage', 'gen', 'kernel'],
  telemetry: ['storage', 'kernel'],
  cluster: ['storage', 'kernel'],
  operations: ['storage', 'kernel'],
  start: [
    'domain',
    'commands',
    'accounts',
    'projections',
    'delivery',
    'cluster',
    'operations',
    'storage',
    'security',
    'kernel',
  ],
  'transport/rest': ['domain', 'commands', 'projections', 'delivery', 'telemetry', 'kernel'],
  'transport/agent': [
    'noise',
    'domain',
    'delivery',
    'telemetry',
    'operations',
    'commands',
    'security',
    'gen',
    'kernel',
  ],
  'transport/listener': ['kernel'],
  agent: ['noise', 'gen', 'transport/listener', 'kernel'],
};

/** Files directly in src/ that wire the parts together, and so may import all of them. */
const WIRING: readonly string[] = ['src/main.ts', 'src/app.ts', 'src/config.ts'];

/** Parts that import no package and no module of Node. */
const PURE: readonly string[] = ['domain'];

/** Packages that one part hides from the others. A key that ends in a slash stands for all packages of a scope. */
const HIDDEN: Readonly<Record<string, readonly string[]>> = {
  lmdb: ['storage'],
  mongodb: ['storage'],
  '@eventstore/db-client': ['storage'],
  fastify: ['transport/rest'],
  '@fastify/': ['transport/rest'],
  '@grpc/grpc-js': ['transport/agent', 'agent', 'gen'],
};

/** Names of the packages that package.json declares. */
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
 * Blanks comments and the text of template literals, so that an import that is only spoken of is not taken for one.
 * Plain strings stay: specifiers are strings. Line breaks stay, so that line numbers are right.
 */
function withoutComments(source: string): string {
  const blank = (text: string): string => text.replace(/[^\n]/g, ' ');
  // Strings come first in the alternation, so "//" in a string is not a comment.
  return source.replace(
    /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g,
    (token) => (token.startsWith("'") || token.startsWith('"') ? token : blank(token)),
  );
}

function importsOf(source: string): readonly Import[] {
  const code = withoutComments(source);
  const found: Import[] = [];
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
      found.push({ specifier, line: upTo.split('\n').length });
    }
  }
  return found;
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
  // Scripts are built and shipped beside src, so they too must run where development packages are not installed.
  const shipped = file.startsWith('src/') || file.startsWith('scripts/');
  if (!declared.runtime.has(name)) {
    if (shipped || !declared.development.has(name)) {
      return `${name} is not among the ${shipped ? 'dependencies' : 'packages'} of package.json`;
    }
  }
  const owners = Object.entries(HIDDEN).find(([key]) => (key.endsWith('/') ? name.startsWith(key) : name === key))?.[1];
  if (part !== null && owners !== undefined && !owners.includes(part)) {
    return `${name} is known to src/${owners.join(', src/')} only`;
  }
  return null;
}

function judgeRelative(file: string, part: string | null, specifier: string): string | null {
  if (!file.startsWith('src/')) return null;
  const target = posix.normalize(posix.join(posix.dirname(file), specifier));
  if (!target.startsWith('src/')) return 'src imports nothing from outside src';
  // Wiring files see everything.
  if (part === null) return null;
  const targetPart = partOf(target);
  if (targetPart === null) return `src/${part} does not import the wiring of the program`;
  if (targetPart === part) return null;
  const allowed = PARTS[part] ?? [];
  if (allowed.includes(targetPart)) return null;
  const others = allowed.length === 0 ? 'no other part' : allowed.join(', ');
  return `src/${part} may import ${others}; not ${targetPart}`;
}

/**
 * Checks one file against the table.
 * @param file path from the project's root, with forward slashes
 * @param source its text
 * @param declared what package.json declares
 * @returns the imports that are forbidden, in the order of their kinds and lines; none when the file is clean
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
        reason: `src/${part} has no clock: the time comes in as a value`,
      });
    }
  }
  return violations;
}

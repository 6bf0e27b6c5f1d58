/**
 * `npm run packages`: makes the packages of a release in `dist/packages`, with SHA256SUMS; with `--trees`, for the image, only
 * the folders that they are made of, in `dist/trees`. Implements `docs/contract/joining.md#what-a-release-is`.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { argv, exit, stderr, stdout } from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundleCli } from '../cli/build.js';
import { buildAgent } from '../scripts/build-agent.js';
import { commitOf } from '../scripts/commit.js';
import { agentUnit, installed, serviceUnit } from '../src/kernel/units.js';
import { version } from '../src/kernel/version.js';
import { debianArchive, npmArchive, writeSums } from './archives.js';
import { bundleService } from './bundle.js';
import { makeDebian, type DebianPackage } from './debian.js';
import { licencesText, packagesOf } from './licences.js';
import { allPlatforms, copyNatives, NativesMissingError, type Platforms } from './natives.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The commit that packages are made from. */
export interface Source {
  readonly commit: string;
  /** Since 1970. */
  readonly seconds: number;
  /** Who made it: `NAME <ADDRESS>`. */
  readonly author: string;
}

/** Packages cannot be made of this tree; the message is a sentence. */
class PackagingError extends Error {}

/** @throws PackagingError unless `clone` is a clone of which nothing has changed */
export function sourceOf(clone: string): Source {
  const commit = commitOf(clone);
  if (commit === 'unknown') throw new PackagingError('expected a clone: packages are made from a commit');
  if (commit.endsWith('-dirty')) throw new PackagingError('files differ from the commit: commit or remove them');
  const shown = ['-C', clone, 'show', '--no-patch', '--format=%ct %an <%ae>', 'HEAD'];
  const [seconds = '', ...author] = execFileSync('git', shown, { encoding: 'utf8' }).trim().split(' ');
  return { commit, seconds: Number(seconds), author: author.join(' ') };
}

interface Program {
  readonly name: 'gateway-control' | 'svcctl' | 'gateway-agent';
  readonly description: string;
  /** The file that is started, in the folder of the package. */
  readonly bin: string;
  readonly os?: readonly string[];
}

const service = {
  name: 'gateway-control',
  description: 'Event-sourced control plane for fleets of gateway nodes',
  bin: 'dist/gateway-control.js',
  os: ['linux'],
} as const satisfies Program;
const agent = {
  name: 'gateway-agent',
  description: 'The reference agent of a gateway node',
  bin: 'gateway-agent.cjs',
} as const satisfies Program;
const svcctl = {
  name: 'svcctl',
  description: 'The command line of the gateway control service',
  bin: 'svcctl.js',
} as const satisfies Program;

/** Makes the content of each npm package, as a folder of its name in `work`. The console must be built. @throws NativesMissingError */
async function makeTrees(work: string, commit: string): Promise<void> {
  rmSync(work, { recursive: true, force: true });
  const inAgent = bundleAgent(work, commit);
  const dist = join(work, service.name, 'dist');
  const inService = await bundleService(root, dist, commit);
  cpSync(join(root, 'dist', 'console'), join(dist, 'console'), { recursive: true });
  const inConsole = JSON.parse(readFileSync(join(dist, 'console', 'packages.json'), 'utf8')) as readonly string[];
  cpSync(join(work, agent.name, agent.bin), join(dist, 'agent', agent.bin));
  const natives = await copyNatives(root, dist, allPlatforms);
  const inSvcctl = await bundleCli(join(work, svcctl.name, svcctl.bin), commit);
  complete(service, work, [...packagesOf([...inService, ...inAgent]), ...inConsole, ...natives]);
  complete(agent, work, packagesOf(inAgent));
  complete(svcctl, work, packagesOf(inSvcctl));
}

/** @returns the paths of what is in it, from the repository */
function bundleAgent(work: string, commit: string): readonly string[] {
  const record = join(work, 'agent.json');
  mkdirSync(work, { recursive: true });
  buildAgent(join(work, agent.name, agent.bin), commit, [`--metafile=${record}`]);
  const { inputs } = JSON.parse(readFileSync(record, 'utf8')) as { readonly inputs: object };
  return Object.keys(inputs);
}

const documents = ['CHANGELOG.md', 'LICENSE', 'THIRD-PARTY-LICENSES'] as const;

/** Adds manifest and documents. @param packages folders of those inside */
function complete({ name, description, bin, os }: Program, work: string, packages: readonly string[]): void {
  const { license, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, unknown>;
  const manifest = { name, version, description, license, type: 'module', bin: { [name]: bin }, engines, os };
  const [changes, terms, foreign] = documents;
  for (const file of [changes, terms]) cpSync(join(root, file), join(work, name, file));
  writeFileSync(join(work, name, foreign), licencesText(root, packages));
  writeFileSync(join(work, name, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
}

/** The names by which Debian and npm call a processor. */
const architectures = [
  ['amd64', 'x64'],
  ['arm64', 'arm64'],
] as const;

async function makeDebians(work: string, out: string, { seconds, author }: Source): Promise<void> {
  const common = { version, seconds, maintainer: author };
  for (const [architecture, cpu] of architectures) {
    await makeDebianOf(work, out, {
      ...common,
      name: service.name,
      architecture,
      natives: { cpu: [cpu], libc: ['glibc'] },
      depends: ['libc6 (>= 2.34)', 'libgcc-s1', 'libstdc++6', 'systemd | systemd-standalone-sysusers'],
      summary: 'control plane for fleets of gateway nodes',
      description: ['Compiles one configuration for each node,', 'and pushes it to the agent of the node.'],
      program: installed.service,
      unit: serviceUnit('/usr/bin/node', installed.service),
      user: 'u gateway-control - "Gateway control service" /var/lib/gateway-control\n',
    });
  }
  await makeDebianOf(work, out, {
    ...common,
    name: agent.name,
    architecture: 'all',
    depends: [],
    summary: 'reference agent of a gateway node',
    description: ['Runs the configuration that the gateway control service', 'compiles for its node.'],
    program: installed.agent,
    unit: agentUnit('/usr/bin/node', installed.agent),
  });
}

async function makeDebianOf(
  work: string,
  out: string,
  { natives, ...made }: DebianPackage & { readonly natives?: Platforms },
): Promise<void> {
  const { name, architecture, seconds } = made;
  const tree = join(work, name);
  const folder = join(work, 'debian', `${name}_${version}_${architecture}`);
  const program = join(folder, 'usr', 'lib', name);
  const elsewhere: readonly string[] = [...documents, join('dist', 'node_modules')];
  cpSync(tree, program, { recursive: true, filter: (path) => !elsewhere.includes(relative(tree, path)) });
  // Debian itself has the text of the project's licence.
  for (const file of ['CHANGELOG.md', 'THIRD-PARTY-LICENSES'])
    cpSync(join(tree, file), join(folder, 'usr', 'share', 'doc', name, file));
  if (natives !== undefined) await copyNatives(root, join(program, 'dist'), natives);
  makeDebian(folder, made);
  debianArchive(folder, join(out, `${basename(folder)}.deb`), seconds);
}

/** Makes all packages in the folder `out`. The console must be built. @throws NativesMissingError */
export async function makePackages(out: string, source: Source): Promise<void> {
  const work = `${out}-work`;
  await makeTrees(work, source.commit);
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  for (const { name } of [service, agent, svcctl])
    npmArchive(join(work, name), join(out, `${name}-${version}.tgz`), source.seconds);
  if (spawnSync('dpkg-deb', ['--version']).status === 0) await makeDebians(work, out, source);
  rmSync(work, { recursive: true });
  writeSums(out);
}

async function main([option]: readonly string[]): Promise<void> {
  const trees = join(root, 'dist', 'trees');
  if (option === '--trees') return makeTrees(trees, commitOf(root));
  const source = sourceOf(root);
  const out = join(root, 'dist', 'packages');
  await makePackages(out, source);
  stdout.write(readFileSync(join(out, 'SHA256SUMS'), 'utf8'));
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href)
  await main(argv.slice(2)).catch((error: unknown) => {
    if (!(error instanceof PackagingError || error instanceof NativesMissingError)) throw error;
    stderr.write(`packages: ${error.message}\n`);
    exit(1);
  });

/** The text of THIRD-PARTY-LICENSES: which packages are in a release, and under which terms. */
import { readFileSync, readdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

/** The folders of the packages that these files belong to. @param files paths, each possibly in a package */
export const packagesOf = (files: readonly string[]): readonly string[] =>
  files.flatMap((file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []);

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

/** @param folders of the packages, from `root`; may repeat @throws Error for a package that states no licence */
export function licencesText(root: string, folders: readonly string[]): string {
  const packages = new Map<string, readonly string[]>();
  for (const folder of new Set(folders.map((one) => resolve(root, one)))) {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
    if (license === undefined) throw new Error(`${relative(root, folder)}: expected a licence in package.json`);
    const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
    const texts = files.sort().map((file) => readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n').trim());
    packages.set(`${name} ${version}: ${license}`, texts);
  }
  const sections = [...packages]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([title, texts]) => [title, ...texts].join('\n\n'));
  const line = `\n\n${'-'.repeat(80)}\n\n`;
  return `This release contains the packages below, each under its own terms.${line}${sections.join(line)}\n`;
}

/** The folder of package.json, whether this runs from the sources or compiled from `dist/`. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

function findRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    if (folder === dirname(folder)) throw new Error('there is no package.json above the tests');
    folder = dirname(folder);
  }
  return folder;
}

export const projectRoot = findRoot();

/** Looks for secrets, in every likely encoding, in anything that will be stored or shown. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';

const formsOf = (secret: Uint8Array | string): readonly string[] => {
  const bytes = Buffer.from(secret as string);
  return [
    ...(typeof secret === 'string' ? [secret] : []),
    bytes.toString('base64').replaceAll('=', ''),
    bytes.toString('base64url'),
    bytes.toString('hex'),
    [...bytes].join(','),
  ];
};

/** The encodings of the secrets that appear in the things, as JSON or in a debugger's output. */
export function clearTextIn(things: readonly unknown[], secrets: readonly (Uint8Array | string)[]): readonly string[] {
  const text = things
    .map(
      (thing) =>
        `${JSON.stringify(thing) ?? ''}\n${inspect(thing, { depth: 20, maxArrayLength: 1000, breakLength: Infinity })}`,
    )
    .join('\n');
  return secrets.flatMap(formsOf).filter((form) => text.includes(form));
}

/** The encodings of the secrets that appear in the raw bytes of the folder's files. */
export function clearTextInFiles(folder: string, secrets: readonly (Uint8Array | string)[]): readonly string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)));
  return secrets.flatMap(formsOf).filter((form) => files.some((bytes) => bytes.includes(form)));
}

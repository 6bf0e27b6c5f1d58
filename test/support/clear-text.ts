/** Looks for secrets, in every form that someone might have written them in, in whatever is going to be kept or shown. */
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

/** The forms of the secrets that stand in the things, as JSON or as a debugger would show them. */
export function clearTextIn(things: readonly unknown[], secrets: readonly (Uint8Array | string)[]): readonly string[] {
  const text = things
    .map(
      (thing) =>
        `${JSON.stringify(thing) ?? ''}\n${inspect(thing, { depth: 20, maxArrayLength: 1000, breakLength: Infinity })}`,
    )
    .join('\n');
  return secrets.flatMap(formsOf).filter((form) => text.includes(form));
}

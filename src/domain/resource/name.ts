/**
 * Checks that people can read and distinguish the names of resources, sets and labels. Implements
 * `docs/contract/domain.md#names`.
 */

const faults: readonly (readonly [RegExp, string])[] = [
  [/\p{Cc}|\p{Zl}|\p{Zp}/u, 'expected no control characters and no line breaks'],
  [/\p{Bidi_Control}/u, 'expected no characters that change the direction of text'],
  [/\p{Surrogate}/u, 'expected well-formed Unicode'],
  [/^\p{White_Space}|\p{White_Space}$/u, 'expected no blank at either end'],
];
const visible = /(?!\p{Default_Ignorable_Code_Point})[\p{L}\p{M}\p{N}\p{P}\p{S}]/u;

/** Says what is expected of a bad name; undefined for a good one. */
export function faultOfName(name: string): string | undefined {
  const fault = faults.find(([pattern]) => pattern.test(name))?.[1];
  return fault ?? (visible.test(name) ? undefined : 'expected at least one visible character');
}

/** Like `faultOfName`, for a set, whose name is part of paths. */
export function faultOfSetName(name: string): string | undefined {
  return name === '.' || name === '..' ? 'expected a name other than "." and ".."' : faultOfName(name);
}

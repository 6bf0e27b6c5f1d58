/** Which names people can tell apart and read: of resources, sets, labels. Implements `docs/contract/domain.md#names`. */

const faults: readonly (readonly [RegExp, string])[] = [
  [/\p{Cc}|\p{Zl}|\p{Zp}/u, 'expected no control characters and no line breaks'],
  [/\p{Bidi_Control}/u, 'expected no characters that change the direction of text'],
  [/\p{Surrogate}/u, 'expected well-formed Unicode'],
  [/^\p{White_Space}|\p{White_Space}$/u, 'expected no blank at either end'],
];
const visible = /(?!\p{Default_Ignorable_Code_Point})[\p{L}\p{M}\p{N}\p{P}\p{S}]/u;

/** What is wrong with a name, as what was expected; undefined of a good one. An empty text is none. */
export function faultOfName(name: string): string | undefined {
  const fault = faults.find(([pattern]) => pattern.test(name))?.[1];
  return fault ?? (visible.test(name) ? undefined : 'expected at least one visible character');
}

/** As `faultOfName`, of a set: its name stands in paths. */
export function faultOfSetName(name: string): string | undefined {
  return name === '.' || name === '..' ? 'expected a name other than "." and ".."' : faultOfName(name);
}

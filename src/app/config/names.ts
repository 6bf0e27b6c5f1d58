/**
 * The names of variables: tells a misspelled name from one that belongs to somebody else. Implements
 * `docs/contract/configuration.md#configuration`, names.
 */

/** Variables of the maintenance commands, of `svcctl`, and of other parts that the contract names. */
const others = [
  'SVC_JOIN_TOKEN',
  'SVC_NEW_MASTER_KEY',
  'SVC_NEW_MASTER_KEY_FILE',
  'SVC_SERVER',
  'SVC_SIM_PASSWORD',
  'SVC_TOKEN',
];

/** Variables of the agent, of the tests, and those that orchestrators set for a service of that name. */
const patterns = [/^SVC_(AGENT|CONTROL|TEST)_/, /_SERVICE_(HOST|PORT)(_|$)/, /_PORT(_|$)/];

/** Up to this many edits count as a misspelling. */
const typoLetters = 2;

interface JudgedNames {
  /** Unknown but close to a known name: a sentence about each. */
  readonly misspelled: readonly string[];
  /** Other unknown names. */
  readonly unknown: readonly string[];
}

/**
 * @param given names that start with `SVC_`
 * @param settings the names of the service's own settings
 */
export function judgeNames(given: readonly string[], settings: readonly string[]): JudgedNames {
  const known = new Set([...settings, ...others]);
  const misspelled: string[] = [];
  const unknown: string[] = [];
  for (const name of given) {
    if (known.has(name)) continue;
    const meant = [...known].find((one) => editDistance(name, one) <= typoLetters);
    if (meant !== undefined) misspelled.push(`${name}: not a setting; expected ${meant}?`);
    else if (!patterns.some((pattern) => pattern.test(name))) unknown.push(name);
  }
  return { misspelled, unknown };
}

/** The number of letters to insert, delete or replace to turn one text into the other (Levenshtein). */
export function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...a].entries()) {
    const current = [row + 1];
    for (const [column, other] of [...b].entries()) {
      const [left = 0, above = 0, diagonal = 0] = [current[column], previous[column + 1], previous[column]];
      current.push(Math.min(left + 1, above + 1, diagonal + (letter === other ? 0 : 1)));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}

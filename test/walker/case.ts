/** One request that must be refused, or found harmless, and what its answer must say. */

export type Role = 'admin' | 'operator' | 'viewer' | 'nobody';

export interface Draft {
  readonly method: string;
  /** With the ids filled in, escaped. */
  readonly path: string;
  readonly query: readonly (readonly [string, string])[];
  readonly headers: Readonly<Record<string, string>>;
  readonly role: Role;
  /** As it is sent. */
  readonly body: string | Buffer | undefined;
}

export interface Expected {
  readonly status: number;
  /** Another status that is as good. */
  readonly or?: number;
  /** The sentence of a 400 starts with one of these. */
  readonly names?: readonly string[];
  /** What else the sentence says. */
  readonly says?: readonly string[];
  /** The methods in `Allow`. */
  readonly allow?: readonly string[];
}

export interface Case {
  readonly what: string;
  readonly draft: Draft;
  readonly expected: Expected;
  /** The statuses that the document lists for the operation; absent where the request is to another path or method. */
  readonly listed?: readonly number[];
}

const statusOfCode: Readonly<Record<string, number>> = {
  invalid_request: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  precondition_failed: 412,
  payload_too_large: 413,
  unsupported_media_type: 415,
};

/** What is wrong with an answer; empty when nothing is. */
export function problemsOf(
  { expected }: Case,
  answer: { readonly status: number; readonly headers: Readonly<Record<string, unknown>>; readonly text: string },
): readonly string[] {
  const problems: string[] = [];
  const { status, headers, text } = answer;
  if (status !== expected.status && status !== expected.or)
    problems.push(`status ${status} instead of ${expected.status}`);
  if (status === 405) {
    const allow = String(headers['allow']).split(', ').toSorted().join();
    if (allow !== expected.allow?.toSorted().join()) problems.push(`Allow is ${allow}, not ${expected.allow?.join()}`);
  }
  if (status === 401 && headers['www-authenticate'] !== 'Bearer') problems.push('no WWW-Authenticate');
  if (text === '') return problems;
  problems.push(...problemsOfEnvelope(status, headers, text, expected));
  return problems;
}

function problemsOfEnvelope(
  status: number,
  headers: Readonly<Record<string, unknown>>,
  text: string,
  expected: Expected,
): readonly string[] {
  if (headers['content-type'] !== 'application/json; charset=utf-8') return [`type ${String(headers['content-type'])}`];
  const problems: string[] = [];
  const envelope = JSON.parse(text) as Readonly<Record<string, unknown>>;
  if (Object.keys(envelope).join() !== 'success,data,error') problems.push('not the three keys');
  if (envelope['success'] !== status < 400) problems.push('wrong success');
  if (status < 400) return problems;
  if (envelope['data'] !== null) problems.push('data beside an error');
  const [, code = '', sentence = ''] = /^([a-z_]+): (.+)$/s.exec(String(envelope['error'])) ?? [];
  if (statusOfCode[code] !== status) problems.push(`the code ${code} is not one of ${status}`);
  const { names, says = [] } = expected;
  const named = names?.some((name) => sentence.startsWith(`${name}: `) || sentence.startsWith(`${name}, `));
  if (named === false) problems.push(`does not name ${names?.join(' or ')}`);
  if (names !== undefined && !/expected|not a field|not a query parameter|no .* has/.test(sentence)) {
    problems.push('does not say what was expected');
  }
  // What a body may not have at all need not be named by its value.
  if (sentence.includes('expected none')) return problems;
  for (const part of says) if (!sentence.includes(part)) problems.push(`does not say ${part}`);
  return problems;
}

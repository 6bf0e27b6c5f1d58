/**
 * Runs the zod schemas of a route and turns the first thing wrong into one sentence that names the field. Not the
 * schemas: they stand beside the handlers, made of `fields.ts`. No sentence ever repeats a value.
 * Implements `docs/contract/rest.md#errors` (`invalid_request`).
 */
import type { FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { ServiceError } from '../../kernel/errors.js';
import { propertyPath } from './json-path.js';

type Issue = z.core.$ZodIssue;

/** Compiles a route's schema; fastify calls it once per route and request part. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  return (data: unknown) => {
    const result = schema.safeParse(data);
    if (result.success) return { value: result.data };
    return { error: new ServiceError('invalid_request', refusalSentence(result.error.issues, httpPart)) };
  };
};

/** What is wrong with a request, in one sentence: unknown fields before wrong values. */
function refusalSentence(issues: readonly Issue[], part: string | undefined): string {
  const issue = issues.find((one) => one.code === 'unrecognized_keys') ?? issues[0];
  return issue === undefined ? 'body: expected another value' : issueSentence(issue, [], part);
}

function issueSentence(issue: Issue, above: readonly PropertyKey[], part: string | undefined): string {
  const path = [...above, ...issue.path];
  switch (issue.code) {
    case 'unrecognized_keys':
      return unknownKeys(path, issue.keys, part);
    case 'invalid_union':
      return unionSentence(issue, path, part);
    default:
      return `${propertyPath(path)}: ${issue.message}`;
  }
}

function unknownKeys(path: readonly PropertyKey[], keys: readonly string[], part: string | undefined): string {
  const names = keys.slice(0, 5).map((key) => propertyPath([...path, key]));
  const what = part === 'querystring' ? 'a query parameter' : 'a field';
  return `${names.join(', ')}: not ${what} of this request`;
}

/**
 * Of the alternatives, the one whose own key is there speaks. If none or several are meant, the union's own sentence
 * tells what they are, unless a key belongs to none of them.
 */
function unionSentence(
  issue: z.core.$ZodIssueInvalidUnion,
  path: readonly PropertyKey[],
  part: string | undefined,
): string {
  const strangers = issue.errors.map(
    (issues) =>
      new Set(issues.flatMap((one) => (one.code === 'unrecognized_keys' && one.path.length === 0 ? one.keys : []))),
  );
  const common = [...(strangers[0] ?? [])].filter((key) => strangers.every((keys) => keys.has(key)));
  if (common.length > 0) return unknownKeys(path, common, part);
  const meant = issue.errors.filter((issues) => issues.every((one) => one.path.length > 0 && !isMissing(one)));
  const [only] = meant;
  const first = only?.[0];
  if (meant.length === 1 && first !== undefined) return issueSentence(first, path, part);
  return `${propertyPath(path)}: ${issue.message}`;
}

function isMissing(issue: Issue): boolean {
  return issue.path.length === 1 && issue.message.startsWith(requiredPrefix);
}

const requiredPrefix = 'required, ';

/** The error text of a schema: what was expected, and that it is required when it is not there at all. */
export function expected(what: string): (issue: { readonly input?: unknown }) => string {
  return (issue) => `${issue.input === undefined ? requiredPrefix : ''}expected ${what}`;
}

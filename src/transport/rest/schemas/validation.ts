/**
 * Runs the zod schemas of a route and turns the first issue into one sentence that names the field and never repeats a value.
 * Implements `docs/contract/rest.md#errors`.
 */
import type { FastifySchemaCompiler } from 'fastify';
import { z } from 'zod';
import { ServiceError } from '../../../kernel/errors.js';
import { propertyPath } from './json-path.js';

type Issue = z.core.$ZodIssue;

/** Compiles a route's schema; fastify calls it once per route and request part. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  return (data: unknown) => {
    const result = schema.safeParse(data);
    if (result.success) return { value: result.data };
    const { sentence, logged } = refusalOf(result.error.issues, httpPart);
    return { error: new ServiceError('invalid_request', sentence, { hints: logged === undefined ? {} : { logged } }) };
  };
};

interface RefusedValue {
  readonly sentence: string;
  /** For the log, if the sentence repeats words of the client. */
  readonly logged?: string;
}

/** The first mistake; unknown fields come before wrong values, and several of one object together. */
function refusalOf(issues: readonly Issue[], part: string | undefined): RefusedValue {
  const issue = issues.find((one) => one.code === 'unrecognized_keys') ?? issues[0];
  const what = part === 'querystring' ? 'query parameter' : 'field';
  const mistakes = mistakesOf(issue === undefined ? [] : [issue], `${what} of this request`);
  const [{ at, message, ofKey } = { at: [], message: 'expected another value' }] = mistakes;
  if (ofKey !== true) return aboutField(at, message);
  const names = mistakes.slice(0, 5).map((mistake) => propertyPath(mistake.at));
  const where = at.length === 1 ? '' : `${propertyPath(at.slice(0, -1))}: `;
  return { sentence: `${names.join(', ')}: ${message}`, logged: `${where}a ${what} that is not one of this request` };
}

/** Keys of a map are the client's own words, so the log does not show them. */
function aboutField(path: readonly PropertyKey[], message: string): RefusedValue {
  const sentence = `${propertyPath(path)}: ${message}`;
  const map = path.findIndex((key) => maps.has(key));
  if (map < 0 || map + 1 >= path.length) return { sentence };
  return { sentence, logged: `${propertyPath([...path.slice(0, map + 1), '*'])}: ${message}` };
}

/** Fields whose keys the client chooses. */
const maps: ReadonlySet<PropertyKey> = new Set(['labels']);

/** A mistake and its place. */
export interface Mistake {
  readonly at: readonly PropertyKey[];
  readonly message: string;
  /** It is about the last key of the path, not about its value. */
  readonly ofKey?: true;
}

/** Every mistake that a schema has found. @param what what the sentences call a field: `field of this document` */
export function mistakesOf(
  issues: readonly Issue[],
  what: string,
  above: readonly PropertyKey[] = [],
): readonly Mistake[] {
  const unknownIn = (at: readonly PropertyKey[], keys: readonly string[]): readonly Mistake[] =>
    keys.map((key) => ({ at: [...at, key], message: `not a ${what}`, ofKey: true }));
  return issues.flatMap((issue): readonly Mistake[] => {
    const at = [...above, ...issue.path];
    if (issue.code === 'unrecognized_keys') return unknownIn(at, issue.keys);
    if (issue.code !== 'invalid_union') return [{ at, message: issue.message }];
    const { unknown, inner } = inUnion(issue);
    if (unknown.length > 0) return unknownIn(at, unknown);
    return inner === undefined ? [{ at, message: issue.message }] : mistakesOf([inner], what, at);
  });
}

/**
 * First the keys that no alternative has; then the issue of the one alternative with the right keys; else the sentence
 * of the union, which lists the alternatives.
 */
function inUnion(issue: z.core.$ZodIssueInvalidUnion): {
  readonly unknown: readonly string[];
  readonly inner?: Issue | undefined;
} {
  const unknownOfEach = issue.errors.map(
    (issues) =>
      new Set(issues.flatMap((one) => (one.code === 'unrecognized_keys' && one.path.length === 0 ? one.keys : []))),
  );
  const unknown = [...(unknownOfEach[0] ?? [])].filter((key) => unknownOfEach.every((keys) => keys.has(key)));
  if (unknown.length > 0) return { unknown };
  const candidates = issue.errors.filter((issues) => issues.every((one) => one.path.length > 0 && !isMissing(one)));
  return { unknown, inner: candidates.length === 1 ? candidates[0]?.[0] : undefined };
}

function isMissing(issue: Issue): boolean {
  return issue.path.length === 1 && issue.message.startsWith(requiredPrefix);
}

const requiredPrefix = 'required, ';

/** Reads a value into its form. @param read undefined for a value that is not `what` */
export const readAs =
  <In, Out extends {}>(what: string, read: (value: In) => Out | undefined) =>
  (value: In, ctx: z.core.$RefinementCtx): Out => {
    const form = read(value);
    if (form !== undefined) return form;
    ctx.issues.push({ code: 'custom', message: `expected ${what}`, input: value });
    return z.NEVER;
  };

/** The error of a schema: the expected value, after `required` when the value is missing. */
export function expected(what: string): (issue: { readonly input?: unknown }) => string {
  return (issue) => `${issue.input === undefined ? requiredPrefix : ''}expected ${what}`;
}

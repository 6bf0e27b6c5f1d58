/**
 * Checks that answers are as the OpenAPI document says: status, headers and body. An answer with a status, a header or a field
 * that the document does not have is an error. Not whether an answer is right.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Document, Operation } from '../../src/transport/rest/openapi/openapi-document.js';

export interface SeenAnswer {
  readonly statusCode: number;
  readonly headers: { readonly [name: string]: string | number | readonly string[] | undefined };
  readonly body: string;
}

interface Header {
  readonly required: boolean;
}

interface Response {
  readonly headers?: { readonly [name: string]: Header };
  readonly content?: { readonly [media: string]: unknown };
}

export interface OpenApiAnswers {
  /** @throws Error that says what the document does not have */
  check(method: string, url: string, answer: SeenAnswer): void;
  /** Checks a value against a part of the document. @returns what is wrong with it, or undefined */
  problem(pointer: string, value: unknown): string | undefined;
}

/** The headers that the document describes; others are not the API's. */
const headersOfTheApi = [
  'allow',
  'etag',
  'location',
  'retry-after',
  'www-authenticate',
  'x-position',
  'x-projection-lag',
  'x-request-id',
];

export const pointerTo = (...keys: readonly string[]): string =>
  `#/${keys.map((key) => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`;

export function openApiAnswers(document: Document): OpenApiAnswers {
  // What is compiled is used a few times only: compiling must be cheap.
  const ajv = new Ajv2020({ strict: false, validateSchema: false, code: { optimize: false } });
  addFormats.default(ajv);
  ajv.addSchema(document, 'openapi');
  const compiled = new Map<string, ValidateFunction>();

  /** The path of the document that a URL has; one without parameters comes first. */
  function pathOf(pathname: string): string | undefined {
    const segments = pathname.split('/');
    const found = Object.keys(document.paths).filter((path) => {
      const template = path.split('/');
      const matches = (word: string, at: number): boolean =>
        word.startsWith('{') ? segments[at] !== '' : word === segments[at];
      return template.length === segments.length && template.every(matches);
    });
    return found.toSorted((a, b) => a.split('{').length - b.split('{').length)[0];
  }

  function problem(pointer: string, value: unknown): string | undefined {
    const validate = compiled.get(pointer) ?? ajv.compile({ $ref: `openapi${pointer}` });
    compiled.set(pointer, validate);
    return validate(value) ? undefined : ajv.errorsText(validate.errors);
  }

  /** The component and its place, behind a reference. */
  function resolved(
    kind: string,
    place: readonly string[],
    value: object,
  ): { place: readonly string[]; value: object } {
    if (!('$ref' in value)) return { place, value };
    const name = String(value.$ref).slice(`#/components/${kind}/`.length);
    return { place: ['components', kind, name], value: document.components[kind]?.[name] ?? {} };
  }

  return {
    problem,
    check(method, url, answer) {
      const pathname = new URL(url, 'http://localhost').pathname;
      const path = pathOf(pathname);
      const operations = path === undefined ? undefined : document.paths[path];
      // A path that does not exist, a preflight, or a failure before there is a path.
      if (path === undefined || operations === undefined || method === 'OPTIONS') return;
      const key =
        operations[method.toLowerCase()] === undefined ? (Object.keys(operations)[0] ?? '') : method.toLowerCase();
      const operation: Operation | undefined = operations[key];
      const { 'x-dry-run': planned } = operation ?? {};
      const isDry = planned !== undefined && answer.statusCode === 200 && /[?&]dry_run=true/.test(url);
      const said = isDry ? planned : operation?.responses[String(answer.statusCode)];
      const fail = (what: string): never => {
        throw new Error(
          `the OpenAPI document does not have ${what}: ${method} ${path} ${answer.statusCode} ${answer.body}`,
        );
      };
      if (said === undefined) return fail('this status');
      const responses = isDry ? ['x-dry-run'] : ['responses', String(answer.statusCode)];
      const at = resolved('responses', ['paths', path, key, ...responses], said);
      const { headers = {}, content = {} } = at.value as Response;

      const named = new Map(
        Object.entries(headers).map(([name, header]) => [name.toLowerCase(), [name, header] as const]),
      );
      for (const name of headersOfTheApi) {
        const value = answer.headers[name];
        const [given, header] = named.get(name) ?? [];
        if (given === undefined || header === undefined) {
          if (value !== undefined) fail(`the header ${name}`);
          continue;
        }
        const { place, value: description } = resolved('headers', [...at.place, 'headers', given], header);
        if (value === undefined) {
          if ((description as Header).required) fail(`an answer without the header ${name}`);
          continue;
        }
        const wrong = problem(pointerTo(...place, 'schema'), value);
        if (wrong !== undefined) fail(`this ${name} (${wrong})`);
      }

      if (method === 'HEAD') return;
      const media = String(answer.headers['content-type'] ?? '').split(';')[0] ?? '';
      if (content[media] === undefined) fail(`this media type (${media})`);
      const value: unknown = media === 'application/json' ? JSON.parse(answer.body) : answer.body;
      const wrong = problem(pointerTo(...at.place, 'content', media, 'schema'), value);
      if (wrong !== undefined) fail(`this body (${wrong})`);
    },
  };
}

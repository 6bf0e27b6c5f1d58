/**
 * Makes the OpenAPI 3.1 document from the declarations of routes: parameters, bodies and answers are the schemas that validate,
 * and failures follow from them (`openapi-failures.ts`). Pure. Implements `docs/contract/rest.md#beside-api`.
 */
import type { z } from 'zod';
import { httpStatusOf, type ErrorCode } from '../../../kernel/errors.js';
import { forEach } from '../../../kernel/pieces.js';
import type { DeclaredRoute, RouteSchema } from '../route-declaration.js';
import { failureSchema } from '../answers/envelope.js';
import { answerHeaders, everyRequestHeaders, type AnswerHeader } from '../schemas/headers.js';
import { failures, failuresOf } from './openapi-failures.js';
import { exampleOf, jsonSchemas, type JsonSchema, type JsonSchemas } from './openapi-schemas.js';
import { previewAnswer } from '../checks/rolled-out.js';
import { reads, sessionCookie } from '../checks/session-token.js';

/** @internal exported for tests */
export type Document = ReturnType<typeof openApiDocument> extends Generator<void, infer D> ? D : never;
export type Operation = ReturnType<typeof operationOf>;

const json = 'application/json';
const routesPerPiece = 20;

const title = 'Gateway control service';
const about = [
  'The control plane of a fleet of gateway nodes.',
  'Every answer under /api is the envelope `{success, data, error}`; `error` is "<code>: <sentence>", and the sentence names the offending field by its JSON path.',
  'A command answers with `x-position`; a GET with this value as `x-min-position` shows what the command did.',
  'A POST that needs no body accepts an empty one or `{}`. HEAD is available outside /api only.',
  'Bytes that are not an HTTP request get a 400, 408 or 431, and the connection is closed.',
].join('\n\n');

/** Descriptions of the groups of routes. */
const tagDescriptions: { readonly [tag: string]: string } = {
  auth: "Sign-in, the caller's own account, and users.",
  nodes: 'Gateway nodes: definition, PSK, configuration snapshot, commands to the agent, links between nodes.',
  'l4-upstreams': 'Targets of chains.',
  credentials: 'Keys and certificates. Private keys go in and never come out.',
  'l4-chains': 'Chains of hops over nodes to a target. Edits take effect with a deploy.',
  routes: 'Legacy HTTP routes by host and path prefix. Changes are live at once.',
  'l3-networks': 'Networks of tunnels that carry IP packets between nodes. Changes of enabled ones are live at once.',
  ports: 'Listeners on each node: intended, reported, and the order in which a shared listener matches.',
  settings: 'Settings of the installation.',
  service: 'The identity of the service, which agents pin.',
  fleet: 'The fleet as a file: documents that describe its resources.',
  audit: 'Who did what and when.',
  events: 'The event feed, in order and resumable.',
  incidents: 'From when something went wrong until it was well again.',
  rollouts: 'Changes on their way to their nodes, wave by wave, and the policies that say how.',
  webhooks: 'URLs that receive items of the event feed.',
  dashboard: 'Figures about the whole fleet.',
  topology: 'The fleet as a picture.',
  operation: 'Outside /api and without its envelope: probes, metrics and this document.',
};

/** Operations whose tag is not the first part of their path. */
const otherTags: readonly (readonly [urls: RegExp, tag: string])[] = [
  [/^\/(?!api\/)/, 'operation'],
  [/^\/api\/nodes\/(ports|:id\/free-ports)\b/, 'ports'],
  [/^\/api\/rollout-policies\b/, 'rollouts'],
  [/^\/api\/join-tokens\b/, 'nodes'],
];

const tagOf = ({ url }: DeclaredRoute): string =>
  otherTags.find(([urls]) => urls.test(url))?.[1] ?? url.split('/')[2] ?? '';

/** In pieces, because all at once holds up a young process for a quarter of a second. @param version of the service */
export function* openApiDocument(routes: readonly DeclaredRoute[], version: string) {
  const schemas = yield* jsonSchemas(
    routes.flatMap(requestSchemas),
    routes.flatMap(answerSchemas).concat(failureSchema),
  );
  const paths: { [path: string]: { [method: string]: Operation } } = {};
  yield* forEach(routes, routesPerPiece, (route) => {
    const path = route.url.replace(/:([A-Za-z_]+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, schemas) };
  });
  const names = [...new Set(routes.map(tagOf))];
  const components: { readonly [kind: string]: { readonly [name: string]: object } } = {
    schemas: schemas.components,
    responses: failureComponents(routes, schemas),
    headers: headerComponents(schemas),
    securitySchemes: {
      bearer: {
        type: 'http',
        scheme: 'bearer',
        bearerFormat: 'JWT',
        description: 'The `token` of POST /api/auth/login',
      },
      cookie: {
        type: 'apiKey',
        in: 'cookie',
        name: sessionCookie,
        description: 'What POST /api/auth/login sets with `cookie: true`; a change needs an `Origin` of the service',
      },
      metricsToken: { type: 'http', scheme: 'bearer', description: 'The token that the settings give to /metrics' },
    },
  };
  return {
    openapi: '3.1.0',
    info: { title, version, description: about, license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/', description: 'The service that serves this document' }],
    tags: names.map((name) => ({ name, description: tagDescriptions[name] ?? name })),
    security: [{ bearer: [] }, { cookie: [] }],
    paths,
    components,
  };
}

const partsOf = ({ params, querystring, headers }: RouteSchema) =>
  [
    ['path', params],
    ['query', querystring],
    ['header', headers],
    ['header', everyRequestHeaders],
  ] as const;

function requestSchemas({ schema }: DeclaredRoute): readonly z.ZodType[] {
  return [...partsOf(schema).map(([, part]) => part), schema.body].filter((part) => part !== undefined);
}

function answerSchemas({ schema, config }: DeclaredRoute): z.ZodType[] {
  const dryRun = config.rollsOut === undefined ? [] : [previewAnswer];
  return [...Object.values(schema.response), ...dryRun, ...Object.values(answerHeaders)];
}

function operationOf(route: DeclaredRoute, schemas: JsonSchemas) {
  const {
    method,
    schema,
    config: { takes },
  } = route;
  const { operationId, summary, description, security, body } = schema;
  return {
    operationId: method === 'HEAD' ? operationId.replace(/^get/, 'head') : operationId,
    summary,
    description,
    tags: [tagOf(route)],
    ...(security === undefined ? {} : { security }),
    parameters: partsOf(schema).flatMap(([where, part]) =>
      part === undefined ? [] : parametersOf(where, schemas.request(part)),
    ),
    ...(body === undefined
      ? {}
      : { requestBody: { required: takes !== 'optional', content: { [json]: mediaOf(body, schemas) } } }),
    responses: responsesOf(route, schemas),
    // Apart, so that generated clients are typed with the command's own answer.
    ...(route.config.rollsOut === 'as planned' ? { 'x-dry-run': dryRunOf(schemas) } : {}),
  };
}

function dryRunOf(schemas: JsonSchemas): object {
  const { description, ...schema } = schemas.answer(previewAnswer);
  const content = { [json]: { schema, example: exampleOf(schema, schemas.components) } };
  return { description, headers: referred(['x-request-id']), content };
}

/** Each property of an object schema as a parameter. */
function parametersOf(where: string, { properties, required }: JsonSchema): readonly object[] {
  const needed = Array.isArray(required) ? required : [];
  return Object.entries((properties ?? {}) as { readonly [name: string]: JsonSchema }).map(([name, property]) => {
    const { description, ...schema } = property;
    return { name, in: where, required: needed.includes(name), description, schema };
  });
}

function mediaOf(body: z.ZodType, schemas: JsonSchemas): object {
  const schema = schemas.request(body);
  return { schema, example: exampleOf(schema, schemas.components) };
}

function responsesOf(route: DeclaredRoute, schemas: JsonSchemas): { readonly [status: string]: object } {
  const { method, schema, config } = route;
  const [media] = schema.produces ?? [json];
  const answers = Object.entries(schema.response).map(([status, answer]) => {
    const { description = schema.summary, ...shown } = schemas.answer(answer);
    const content = {
      [media]: { schema: shown, example: exampleOf(shown, schemas.components) },
      ...(schema.streams === undefined
        ? {}
        : { [schema.streams.media]: { schema: { type: 'string' }, example: schema.streams.example } }),
    };
    const headers: AnswerHeader[] = ['x-request-id'];
    if (config.sendsEtag === true) headers.push('ETag');
    if (status === '201') headers.push('Location');
    if (config.readsStored === true) headers.push('x-projection-lag');
    if (method === 'GET' && config.access !== 'open') headers.push('x-telemetry-stale');
    const written: AnswerHeader[] = reads(method) || config.access === 'login' ? [] : ['x-position'];
    const response = {
      description,
      headers: {
        ...referred(headers),
        ...referred(written, config.mayOnlyLook === true || config.rollsOut !== undefined ? sometimes : undefined),
      },
    };
    return [status, method === 'HEAD' ? response : { ...response, content }] as const;
  });
  const refusals = failuresOf(route)
    .map((code) => [String(httpStatusOf(code)), { $ref: `#/components/responses/${code}` }] as const)
    .filter(([status]) => schema.response[Number(status)] === undefined);
  return Object.fromEntries([...answers, ...refusals]);
}

/** The failures, each the same on every route. */
function failureComponents(
  routes: readonly DeclaredRoute[],
  schemas: JsonSchemas,
): { readonly [name: string]: object } {
  const used = new Set(routes.flatMap(failuresOf));
  return Object.fromEntries(
    [...used].map((code) => {
      const { description, example } = failures[code];
      const value = { success: false, data: null, error: `${code}: ${example}` };
      return [
        code,
        {
          description,
          headers: {
            ...referred(['x-request-id', 'x-projection-lag', ...(failureHeaders[code] ?? [])]),
            ...referred(headersOfWritten[code] ?? [], sometimes),
          },
          content: { [json]: { schema: schemas.answer(failureSchema), example: value } },
        },
      ];
    }),
  );
}

const failureHeaders: { readonly [code in ErrorCode]?: readonly AnswerHeader[] } = {
  unauthenticated: ['WWW-Authenticate'],
  method_not_allowed: ['Allow'],
  rate_limited: ['Retry-After'],
  unavailable: ['Retry-After'],
};

/** Sent when the change was written and only the answer failed, or the resource of a repeat is gone. */
const headersOfWritten: { readonly [code in ErrorCode]?: readonly AnswerHeader[] } = {
  not_found: ['x-position'],
  internal: ['x-position'],
  unavailable: ['x-position'],
};

/** Headers that are required where they are listed, unless the request may have written nothing. */
const alwaysSent: ReadonlySet<AnswerHeader> = new Set(['x-position', 'ETag', 'Location', 'Allow', 'WWW-Authenticate']);
const sometimes = (name: AnswerHeader): string => (alwaysSent.has(name) ? `${name}-if-known` : name);

/** @param componentOf the component that describes a header */
function referred(
  names: readonly AnswerHeader[],
  componentOf: (name: AnswerHeader) => string = (name) => name,
): { readonly [name: string]: object } {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${componentOf(name)}` }]));
}

function headerComponents(schemas: JsonSchemas): { readonly [name: string]: object } {
  const headers = (Object.keys(answerHeaders) as AnswerHeader[]).map((name) => {
    const { description, ...schema } = schemas.answer(answerHeaders[name]);
    return [name, { description, required: alwaysSent.has(name), schema }] as const;
  });
  const { 'x-position': position } = Object.fromEntries(headers);
  return Object.fromEntries([...headers, [sometimes('x-position'), { ...position, required: false }]]);
}

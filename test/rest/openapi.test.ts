/**
 * The OpenAPI document and its page (`docs/contract/rest.md#beside-api`): that it lists what there is, says all of it, and
 * keeps the rules of the standard. Whether answers match it is checked wherever tests call the service.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { release } from '../../src/kernel/version.js';
import type { Document, Operation } from '../../src/transport/rest/openapi/openapi-document.js';
import { openApiAnswers, pointerTo } from '../support/openapi-answers.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description?: string;
  readonly schema: object;
}

let rest: RestFixture;
let document: Document;
let operations: readonly {
  readonly path: string;
  readonly method: string;
  readonly name: string;
  readonly operation: Operation;
}[];
beforeAll(async () => {
  rest = await startRest();
  document = (await rest.call('GET', '/openapi.json', { role: 'nobody' })).json();
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      path,
      method,
      name: `${method.toUpperCase()} ${path}`,
      operation,
    })),
  );
});
afterAll(() => rest.close());

const parametersOf = (operation: Operation): readonly Parameter[] => operation.parameters as readonly Parameter[];

/** What a JSON pointer of the document names. */
function named(reference: string): JsonData {
  return reference
    .split('/')
    .slice(1)
    .reduce<JsonData>((at, key) => at?.[decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~')], document);
}

const referencesIn = (value: unknown): readonly string[] =>
  [...JSON.stringify(value).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? '');

describe('the OpenAPI document', () => {
  test('gives each operation a name of its own, a summary, a description and a group', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index || !/^[a-z]+([A-Z][a-z0-9]*)+$/.test(id))).toEqual([]);
    const silent = operations.filter(
      ({ operation: { summary, description } }) => summary.length < 5 || description.length < 20,
    );
    expect(silent.map(({ name }) => name)).toEqual([]);
    const groups = document.tags.map(({ name }) => name);
    for (const { operation } of operations) expect(groups).toContain(operation.tags[0]);
    expect(document.tags.filter(({ name, description }) => name === description)).toEqual([]);
  });

  test('describes parameters, body and failures of each endpoint as the service checks them', () => {
    for (const { path, method, name, operation } of operations.filter((one) => one.path.startsWith('/api/'))) {
      const [isGet, isLogin] = [method === 'get', path === '/api/auth/login'];
      const body = (operation.requestBody as JsonData)?.content['application/json']?.schema;
      const whole = body?.$ref === undefined ? body : named(body.$ref);
      const alternatives: JsonData[] = whole?.oneOf ?? whole?.anyOf ?? (whole === undefined ? [] : [whole]);
      for (const alternative of alternatives.map((any) => (any?.$ref === undefined ? any : named(any.$ref)))) {
        expect([name, alternative?.additionalProperties]).toEqual([name, false]);
      }
      expect(operation.security).toEqual(isLogin ? [] : undefined);
      const parameters = parametersOf(operation).map((parameter) => `${parameter.in} ${parameter.name}`);
      expect(parameters.includes('path id')).toBe(path.includes('{id}'));
      const keyed = method === 'post' && !isLogin && path !== '/api/auth/logout';
      expect(parameters.includes('header idempotency-key')).toBe(keyed);
      expect(parameters.includes('header x-min-position')).toBe(isGet);
      expect(parameters).toContain('header x-request-id');

      const statuses = Object.keys(operation.responses);
      const created = method === 'post' && /^\/api\/(auth\/users|auth\/tokens|[^/]+)$/.test(path);
      const always = [created ? '201' : '200', '400', '401', '405', '500', '503'];
      expect([name, always.filter((status) => !statuses.includes(status))]).toEqual([name, []]);
      const expected = {
        403: !isGet || /^\/api\/(auth\/users|webhooks)|\/diagnostics$/.test(path),
        412: parameters.includes('header if-match'),
        413: !isGet,
        415: !isGet,
      };
      for (const [status, can] of Object.entries(expected)) {
        expect([name, status, statuses.includes(status)]).toEqual([name, status, can]);
      }
      if (path.includes('{id}')) expect([name, statuses]).toEqual([name, expect.arrayContaining(['404'])]);
      expect(statuses).not.toContain('default');
    }
  });

  test('declares each part of a path as a parameter, and describes each parameter, once', () => {
    for (const { path, name, operation } of operations) {
      const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]);
      const parameters = parametersOf(operation);
      const declared = parameters.filter((one) => one.in === 'path');
      expect([name, declared.map((one) => one.name)]).toEqual([name, inPath]);
      expect(declared.filter((one) => !one.required)).toEqual([]);
      expect([name, parameters.filter((one) => !one.description)]).toEqual([name, []]);
      const keys = parameters.map((one) => `${one.in} ${one.name}`);
      expect(keys).toEqual([...new Set(keys)]);
    }
  });

  test('describes each answer, its headers included', () => {
    for (const { name, method, operation } of operations) {
      for (const [status, answer] of Object.entries(operation.responses)) {
        const whole = ('$ref' in answer ? named(String(answer.$ref)) : answer) as JsonData;
        expect([name, status, whole.description]).toEqual([name, status, expect.stringMatching(/.{5}/)]);
        expect(Object.keys(whole.headers)).toContain('x-request-id');
        if (method !== 'head') expect([name, status, whole.content]).toEqual([name, status, expect.any(Object)]);
      }
    }
    for (const header of Object.values(document.components['headers'] ?? {})) {
      expect(header).toMatchObject({ description: expect.any(String), schema: { type: 'string' } });
    }
  });

  test('says under which licence it is and where it is served, and its examples of positions can be tried', () => {
    const { info, servers, paths } = document as unknown as JsonData;
    expect(document.openapi).toBe('3.1.0');
    expect(info.license.identifier).toBe('Apache-2.0');
    expect(servers.map(({ url }: JsonData) => url)).toEqual(['/']);
    const examples = Object.values(paths).flatMap((path) =>
      Object.values(path as JsonData).flatMap(({ parameters = [] }: JsonData) =>
        parameters
          .filter(({ name }: JsonData) => name === 'x-min-position')
          .map(({ schema }: JsonData) => schema.examples),
      ),
    );
    expect(new Set(examples.flat())).toEqual(new Set([0]));
  });

  test('has numbers that generators can read: integers of 64 bits where they have no bound below 2^31, and doubles', () => {
    const narrow: string[] = [];
    const visit = (value: unknown, at: string): void => {
      if (typeof value !== 'object' || value === null) return;
      const { type, maximum = Infinity, format } = value as JsonData;
      if (type === 'integer' && maximum >= 2 ** 31 && format !== 'int64') narrow.push(at);
      if (type === 'number' && format !== 'double') narrow.push(at);
      const name = at.slice(at.lastIndexOf('/'));
      const isCount = /(bytes|sessions|requests|errors|count)/i.test(name) && !/_per_(sec|min)$/.test(name);
      if (type === 'number' && isCount) narrow.push(at);
      for (const [key, inner] of Object.entries(value)) visit(inner, `${at}/${key}`);
    };
    visit(document.components.schemas, '');
    visit(document.paths, 'paths');
    expect(narrow).toEqual([]);
    const { properties } = (document.components.schemas ?? {})['ConnectionMetrics'] as JsonData;
    expect(properties.accepted).toMatchObject({ type: 'integer', format: 'int64' });
  });

  test('names the envelopes of named answers, their pages, and the branches of a target', () => {
    expect(Object.keys(document.components.schemas ?? {})).toEqual(
      expect.arrayContaining(['NodeAnswer', 'L4ChainAnswer', 'NodePage', 'UpstreamTarget', 'EndpointTarget']),
    );
  });

  test.each([
    [
      'endpoint',
      ['a.example:80', '[2001:db8::1]:443', '192.0.2.1:65535', 'A_b.example:1'],
      ['a.example', 'a b:80', ':80'],
    ],
    ['email', ['ada@example.org'], ['ada', 'a b@c']],
  ])(
    'has a pattern for %s that takes what the service takes, and refuses what is nothing like it',
    (field, right, wrong) => {
      const patterns: string[] = [];
      const visit = (value: unknown): void => {
        if (typeof value !== 'object' || value === null) return;
        const { pattern } = ((value as JsonData).properties?.[field] ?? {}) as JsonData;
        const nullable = ((value as JsonData).properties?.[field]?.anyOf ?? []).map((one: JsonData) => one.pattern);
        patterns.push(...[pattern, ...nullable].filter((one) => one !== undefined));
        for (const inner of Object.values(value)) visit(inner);
      };
      visit(document.components.schemas);
      expect(patterns.length).toBeGreaterThan(0);
      for (const pattern of patterns) {
        const expression = new RegExp(pattern, 'u');
        expect(right.filter((text) => !expression.test(text))).toEqual([]);
        expect(wrong.filter((text) => expression.test(text))).toEqual([]);
      }
    },
  );

  test('refers to nothing that it does not have, and has no component that nothing refers to', () => {
    const references = new Set(referencesIn(document));
    expect([...references].filter((reference) => named(reference) === undefined)).toEqual([]);
    const { securitySchemes, ...kinds } = document.components;
    const components = Object.entries(kinds).flatMap(([kind, all]) =>
      Object.keys(all).map((name) => `#/components/${kind}/${name}`),
    );
    expect(components.filter((component) => !references.has(component))).toEqual([]);
    expect(Object.keys(securitySchemes ?? {})).toEqual(['bearer', 'cookie', 'metricsToken']);
  });
});

describe('the schemas of the OpenAPI document', () => {
  const schemas = (): readonly (readonly [string, JsonData])[] => Object.entries(document.components['schemas'] ?? {});

  test('have a description each, and so has every field', () => {
    const silent: string[] = [];
    const look = (schema: JsonData, path: string): void => {
      for (const [name, field] of Object.entries<JsonData>(schema?.properties ?? {})) {
        if ((field.description ?? named(field.$ref ?? '')?.description ?? '').length < 3)
          silent.push(`${path}.${name}`);
        look(field, `${path}.${name}`);
      }
      if (schema?.items !== undefined) look(schema.items, `${path}[]`);
      for (const alternative of [...(schema?.anyOf ?? []), ...(schema?.oneOf ?? [])]) look(alternative, path);
    };
    for (const [name, schema] of schemas()) {
      if ((schema.description ?? '').length < 5) silent.push(name);
      look(schema, name);
    }
    for (const { name, operation } of operations) {
      const body = (operation.requestBody as JsonData)?.content['application/json'].schema;
      // Bodies are components, so that generated clients have a name for them.
      if (body !== undefined) expect([name, body.$ref]).toEqual([name, expect.any(String)]);
      for (const answer of Object.values(operation.responses) as JsonData[]) {
        look(answer.content?.['application/json']?.schema, name);
      }
    }
    expect(silent).toEqual([]);
  });

  test('have examples that they accept, and so have fields, parameters, headers, bodies and answers', () => {
    const { problem } = openApiAnswers(document);
    const wrong: string[] = [];
    let examples = 0;
    // Many parameters and fields are the same.
    const tried = new Set<string>();
    const tryOut = (keys: readonly string[], example: unknown): void => {
      examples += 1;
      const text = JSON.stringify([named(pointerTo(...keys)), example]);
      if (tried.has(text)) return;
      tried.add(text);
      const said = problem(pointerTo(...keys), example);
      if (said !== undefined) wrong.push(`${keys.join(' ')}: ${said}`);
    };
    const walk = (value: JsonData, keys: readonly string[]): void => {
      if (typeof value !== 'object' || value === null) return;
      if (Array.isArray(value.examples)) for (const example of value.examples) tryOut(keys, example);
      if ('example' in value && 'schema' in value) tryOut([...keys, 'schema'], value.example);
      for (const [key, inner] of Object.entries(value)) {
        if (key !== 'examples' && key !== 'example' && key !== 'default') walk(inner, [...keys, key]);
      }
    };
    walk(document, []);
    expect(wrong).toEqual([]);
    expect(examples).toBeGreaterThan(500);
    expect(
      schemas()
        .filter(([, schema]) => !Array.isArray(schema.examples))
        .map(([name]) => name),
    ).toEqual([]);
    for (const { name, operation } of operations) {
      const bodies = [operation.requestBody, ...Object.values(operation.responses)] as JsonData[];
      for (const media of bodies.flatMap((one) => Object.values<JsonData>(one?.content ?? {}))) {
        expect([name, media.example]).toEqual([name, expect.anything()]);
      }
    }
  });

  test('do not let anything pass that they do not describe', () => {
    const { check, problem } = openApiAnswers(document);
    const node = named('#/components/schemas/Node') as JsonData;
    const at = pointerTo('components', 'schemas', 'Node');
    expect(problem(at, node.examples[0])).toBeUndefined();
    expect(problem(at, { ...node.examples[0], colour: 'red' })).toContain('additional properties');
    expect(problem(at, { ...node.examples[0], created_at: 'yesterday' })).toContain('date-time');
    const answer = {
      statusCode: 200,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ status: 'ok', ...release }),
    };
    expect(() => check('GET', '/healthz', answer)).not.toThrow();
    expect(() => check('GET', '/healthz', { ...answer, statusCode: 418 })).toThrow('this status');
    expect(() => check('GET', '/healthz', { ...answer, body: '{"status":"well"}' })).toThrow('this body');
    const wrong = { ...answer, headers: { ...answer.headers, etag: '"1"' } };
    expect(() => check('GET', '/healthz', wrong)).toThrow('the header etag');
    expect(() => check('DELETE', '/healthz', { ...answer, statusCode: 405 })).toThrow('without the header allow');
  });
});

test('the page is of the same policy as the console, with files of its own service alone', async () => {
  const { body, headers } = await rest.call('GET', '/docs', { role: 'nobody' });
  expect(headers['content-type']).toMatch(/^text\/html/);
  const policy = String(headers['content-security-policy']);
  expect(policy).toContain("default-src 'none'; script-src 'self';");
  expect(body.replaceAll(/<a [^>]*>/g, '')).not.toMatch(/https?:\/\/|\son[a-z]+=|__CSP_NONCE__|<script(?![^>]* src=)/i);
  const files = [...body.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, file = '']) => file);
  expect(files.some((file) => file.endsWith('.css')) && files.some((file) => file.endsWith('.js'))).toBe(true);
  for (const file of files)
    expect([file, (await rest.call('GET', file, { role: 'nobody' })).statusCode]).toEqual([file, 200]);
});

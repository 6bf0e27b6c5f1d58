/**
 * The requests of the walk, from the operations of the document: each with one thing wrong, with two things wrong, of which
 * the earlier check answers, or with nothing wrong but what keeps it from being carried out. Pure.
 */
import type { Document, Operation, Parameter, Schema } from '../support/openapi-document.js';
import { idlessPaths, lookingPaths } from '../support/one-of-each.js';
import type { Case, Draft, Expected, Role } from './case.js';
import { bodyMutations, fits } from './mutations.js';
import { alternativesOf, isObject, marker, validEntry, validValue, type RealIds } from '../support/openapi-values.js';

/** What the walk knows of the service that it walks. */
export interface Site {
  readonly document: Document;
  readonly operations: readonly Operation[];
  /** For fields of bodies and queries. */
  readonly ids: RealIds;
  /** An id of a collection such as `/api/nodes`. */
  idOf(collection: string): string;
  /** An id of another type. */
  otherIdOf(collection: string): string;
  /** The name of a resource of the collection that exists. */
  readonly takenName: string;
  /** The same for a user. */
  readonly takenUsername: string;
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const unknownPath = 'an unknown path';
const unknownId = '00000000-0000-4000-8000-000000000000';
const [tooLarge, tooLargeDocument] = [256, 20 * 1024].map((kib) => `{"name":"${marker}"}`.padEnd(kib * 1024 + 1));
const tooLargeFor = ({ path }: Operation): string | undefined =>
  path.startsWith('/api/fleet/') ? tooLargeDocument : tooLarge;
const refusedIds = (otherId: string): readonly string[] => [
  unknownId,
  otherId,
  'x',
  '0',
  otherId.toUpperCase(),
  `${otherId}0`,
  otherId.replaceAll('-', ''),
  `{${otherId}}`,
  '__proto__',
  'constructor',
  '%00',
  '%ff',
  '%zz',
  '..%2f..%2fadmin',
  `${otherId}%20`,
  'x'.repeat(2_000),
  encodeURIComponent(marker),
];

/** The role that a caller must have, by `docs/contract/rest.md#authentication-and-roles`. */
function roleFor({ method, path }: Pick<Operation, 'method' | 'path'>): Role {
  if (!path.startsWith('/api/') || path === '/api/auth/login') return 'nobody';
  if (/^\/api\/(auth\/users|webhooks)/.test(path)) return 'admin';
  if (path.startsWith('/api/service/') && method === 'POST') return 'admin';
  return method === 'GET' || path.startsWith('/api/auth/') || lookingPaths.includes(path) ? 'viewer' : 'operator';
}

/**
 * Operations share fields, parameters and headers. The first operation of each gets all that can be wrong with it; the others
 * get the first, which tells whether they look at it at all.
 */
interface Shared {
  /** @param place where it is in this operation @param value what is sent there, with what makes it another one */
  isNew(place: string, value: string): boolean;
}

/** @param sent by the operations before, to be added to */
function sharedOf(sent: Set<string>): Shared {
  const places = new Set<string>();
  return {
    isNew(place, value) {
      const isKnown = sent.has(value) && places.has(place);
      sent.add(value);
      places.add(place);
      return !isKnown;
    },
  };
}

export function* casesOf(site: Site): Generator<Case> {
  // What is beside /api reads neither bodies nor queries, and a sign-out ends the token of all that comes after it.
  const walked = site.operations.filter(({ path }) => path.startsWith('/api/') && path !== '/api/auth/logout');
  const sent = new Set<string>();
  for (const operation of walked) {
    for (const one of casesOfOperation(site, operation, sharedOf(sent))) {
      const { method, path, statuses } = operation;
      const elsewhere = one.what.startsWith(unknownPath);
      yield { ...one, what: `${method} ${path}: ${one.what}`, ...(elsewhere ? {} : { listed: statuses }) };
    }
  }
  yield* wrongMethods(site);
}

function* casesOfOperation(site: Site, operation: Operation, shared: Shared): Generator<Case> {
  for (const [alternative, base] of draftsOf(site, operation).entries()) {
    yield* harmlessCase(operation, base);
    yield* wrongBodies(site, operation, base, shared);
    yield* wrongReferences(site, operation, base);
    // The rest does not depend on which body it is.
    if (alternative > 0) continue;
    yield* wrongQueries(site, operation, base, shared);
    yield* wrongHeaders(operation, base, shared);
    yield* wrongIds(site, operation, base, shared);
    yield* takenNames(site, operation, base);
    yield* pairsOfFaults(site, operation, base);
  }
}

const takesBody = ({ method }: { readonly method: string }): boolean => method !== 'GET' && method !== 'HEAD';

const hasId = ({ path }: Operation): boolean => path.includes('{');

function collectionOf({ path }: Operation): string {
  return path.slice(0, path.indexOf('/{'));
}

/** What is about resources of one type: `/api/nodes` and all beneath it. */
function familyOf({ path }: Operation): string {
  return path.split('/').slice(0, 3).join('/');
}

function pathWith(operation: Operation, id: string): string {
  return operation.path.replaceAll(/\{[^}]+\}/g, () => id);
}

/** Drafts with nothing wrong: one, or one for each alternative of the body. */
function draftsOf(site: Site, operation: Operation): readonly Draft[] {
  const { document, ids } = site;
  const required = operation.parameters.filter((one) => one.in === 'query' && one.required === true);
  const draft: Draft = {
    method: operation.method,
    path: hasId(operation) ? pathWith(operation, site.idOf(collectionOf(operation))) : operation.path,
    query: required.map(({ name, schema }) => [name, String(validValue(document, schema ?? {}, name, ids))]),
    headers: {},
    role: roleFor(operation) === 'nobody' ? 'nobody' : 'admin',
    body: undefined,
  };
  if (operation.body === undefined) return [draft];
  return alternativesOf(document, operation.body).map((alternative) => {
    const body = { ...(validValue(document, alternative, '', ids) as object) };
    const taken = creates(operation)
      ? Object.fromEntries(
          nameFields(alternative).map((key) => [key, key === 'name' ? site.takenName : site.takenUsername]),
        )
      : {};
    return { ...draft, body: JSON.stringify({ ...body, ...taken }) };
  });
}

function creates(operation: Operation): boolean {
  if (idlessPaths.includes(operation.path)) return false;
  return operation.method === 'POST' && !hasId(operation) && roleFor(operation) !== 'nobody';
}

function nameFields({ properties = {} }: Schema): readonly string[] {
  return ['name', 'username'].filter((key) => key in properties);
}

/**
 * The draft with what keeps it from being carried out although nothing is wrong with it, and how it is then answered;
 * undefined where nothing does.
 */
function harmless(operation: Operation, draft: Draft): { readonly draft: Draft; readonly status: number } | undefined {
  if (!takesBody(operation)) return { draft, status: 200 };
  if (hasId(operation)) return { draft: { ...draft, path: pathWith(operation, unknownId) }, status: 404 };
  if (has(operation, 'header', 'if-match')) {
    return { draft: { ...draft, headers: { ...draft.headers, 'if-match': '"999999"' } }, status: 412 };
  }
  // Its name is taken.
  return creates(operation) ? { draft, status: 409 } : undefined;
}

function has({ parameters }: Operation, where: string, name: string): boolean {
  return parameters.some((one) => one.in === where && one.name === name);
}

function* harmlessCase(operation: Operation, base: Draft): Generator<Case> {
  const possible = harmless(operation, base);
  if (possible === undefined) return;
  yield { what: 'nothing wrong', draft: possible.draft, expected: { status: possible.status } };
}

const invalid = (names: readonly string[]): Expected => ({ status: 400, names });

function* wrongBodies({ document, ids }: Site, operation: Operation, base: Draft, shared: Shared): Generator<Case> {
  if (!takesBody(operation)) return;
  const wrong = (what: string, body: string | Buffer, names: readonly string[]): Case => ({
    what,
    draft: { ...base, body },
    expected: invalid(names),
  });
  const { body: schema } = operation;
  for (const text of [
    '[]',
    '[{}]',
    '7',
    'null',
    'true',
    `"${marker}"`,
    '{',
    `{"${marker}`,
    '{"a":1,}',
    '{}{}',
    '\u0000',
  ]) {
    if (!shared.isNew('text', `text ${familyOf(operation)} ${text}`)) continue;
    yield wrong(`the body ${JSON.stringify(text)}`, text, ['body']);
  }
  if (shared.isNew('text', `bytes ${familyOf(operation)}`)) {
    yield wrong('a body that is nested deeply', `${'['.repeat(20_000)}`, ['body']);
    yield wrong('a body that is not UTF-8', Buffer.from(`{"${marker}\xe9":1}`, 'latin1'), ['body']);
  }
  yield { what: 'a byte too many', draft: { ...base, body: tooLargeFor(operation) }, expected: { status: 413 } };
  if (schema === undefined) {
    for (const key of ['name', '__proto__', 'constructor', 'prototype']) {
      yield wrong(`a body with ${key}`, `{${JSON.stringify(key)}:${JSON.stringify(marker)}}`, [key]);
    }
    yield wrong('a key twice', '{"a":1,"a":1}', ['a']);
    return;
  }
  if (!operation.bodyIsOptional) yield wrong('an empty body', '', ['body']);
  const value = JSON.parse(String(base.body)) as unknown;
  const [text] = Object.entries(value as object).find(([, one]) => typeof one === 'string') ?? [];
  if (text !== undefined) {
    const whole = JSON.stringify({ ...(value as object), [text]: '@' });
    yield wrong('a string that is not UTF-8', Buffer.from(whole.replace('"@"', '"\xff\xfe"'), 'latin1'), ['body']);
  }
  for (const mutation of bodyMutations(document, ids, schema, value)) {
    // A create and an edit of a resource have the same fields.
    const of = `${familyOf(operation)} ${mutation.what} ${mutation.value}`;
    if (!shared.isNew(`body ${mutation.path} ${mutation.names === undefined}`, of)) continue;
    if (mutation.names !== undefined) yield wrong(mutation.what, mutation.text, mutation.names);
    // A field inside of others may need or forbid its neighbours. A create with another name would be carried out.
    else if (!/[.[]/.test(mutation.path) && !(creates(operation) && /^(user)?name$/.test(mutation.path))) {
      const possible = harmless(operation, { ...base, body: mutation.text });
      if (possible !== undefined) {
        yield { what: mutation.what, draft: possible.draft, expected: { status: possible.status } };
      }
    }
  }
}

/** What stands beside a parameter that says nothing alone. Behind the start of the log is something, so that nobody waits. */
const beside: { readonly [name: string]: Draft['query'] } = {
  wait_ms: [['after', 'start']],
  group: [['group_by', 'region']],
  valid_days: [['mode', 'candidate']],
  confirm: [['confirm_secs', '60']],
  confirm_secs: [['confirm', 'manual']],
};

function* wrongQueries({ document, ids }: Site, operation: Operation, base: Draft, shared: Shared): Generator<Case> {
  const query = (added: Draft['query'], name: string): Draft => ({
    ...base,
    query: [...base.query.filter(([one]) => one !== name), ...added],
  });
  const wrong = (what: string, added: Draft['query'], name: string, named = name): Case => ({
    what: `query ${what}`,
    draft: query(added, name),
    expected: invalid([named]),
  });
  for (const name of ['walks_nowhere', '__proto__', 'constructor', 'prototype', 'Page', 'page[]']) {
    if (!shared.isNew('query name', `query name ${name}`)) continue;
    yield wrong(`with ${name}`, [[name, marker]], name);
  }
  for (const { name, schema: whole = {}, required } of operation.parameters.filter((one) => one.in === 'query')) {
    const schema = whole.items ?? whole;
    if (whole.items === undefined) {
      const value = String(validValue(document, schema, name, ids));
      yield wrong(
        `${name} twice`,
        [
          [name, value],
          [name, value],
        ],
        name,
      );
    }
    if (required === true) yield wrong(`without ${name}`, [], name);
    const named = whole.items === undefined ? name : `${name}[0]`;
    const isNew = (kind: string, text: string): boolean =>
      shared.isNew(`query ${kind} ${name}`, `query ${kind} ${name} ${JSON.stringify(whole)} ${text}`);
    for (const text of wrongTexts(schema).filter((one) => isNew('wrong', one)))
      yield wrong(`${name}=${text.slice(0, 40)}`, [[name, text]], name, named);
    const possible = harmless(operation, base);
    // What is required says which one is meant, and of another one nothing is known.
    if (possible === undefined || required === true) continue;
    for (const text of rightTexts(schema).filter((one) => isNew('right', one))) {
      const { path, headers } = possible.draft;
      const added: Draft['query'] = [[name, text], ...(beside[name] ?? [])];
      yield {
        what: `query ${name}=${text.slice(0, 40)}, which is allowed`,
        draft: { ...query(added, name), path, headers },
        // Of one resource, a query may ask for a part that is not there; none of the texts is a policy's name.
        expected:
          name === 'rollout'
            ? { status: 400, or: possible.status }
            : { status: possible.status, ...(hasId(operation) ? { or: 404 } : {}) },
      };
    }
  }
}

function wrongTexts({ enum: values, type, minimum, maximum, minLength, maxLength }: Schema): readonly string[] {
  if (values !== undefined) return ['', marker, String(values[0]).toUpperCase(), `${String(values[0])} `];
  if (type === 'integer') {
    return [
      '',
      'x',
      '1.5',
      '1e1',
      '-1',
      '+1',
      '0x10',
      ' 1',
      '9007199254740993',
      marker,
      ...(minimum === undefined ? [] : [String(minimum - 1)]),
      ...(maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER ? [] : [String(maximum + 1)]),
    ];
  }
  const long = maxLength === undefined ? [] : ['x'.repeat(maxLength + 1)];
  if (minLength === undefined) return ['\u0001', marker, ...long];
  return [...(minLength > 0 ? [''] : []), ...long];
}

/** For a filter, of which nothing depends on another. */
function rightTexts({ enum: values, type, minimum, maximum, minLength, maxLength }: Schema): readonly string[] {
  if (values !== undefined) return values.map(String);
  if (type === 'integer') return [minimum, maximum].flatMap((bound) => (bound === undefined ? [] : [String(bound)]));
  if (minLength === undefined || maxLength === undefined) return [];
  return ['x'.repeat(Math.max(1, minLength)), 'x'.repeat(maxLength), "' OR 1=1 --", '\u0000', '%'];
}

const wrongOfHeader: Readonly<Record<string, readonly string[]>> = {
  'if-match': ['7', '"7', '', '"1" "2"', '*, "1"', marker],
  'idempotency-key': ['', 'a b', 'x'.repeat(129), 'caf\u00e9'],
  'x-min-position': ['-1', '', 'x', '1.5', '0x10', '9007199254740993', '99999999999999999999', marker],
};

function* wrongHeaders(operation: Operation, base: Draft, shared: Shared): Generator<Case> {
  for (const parameter of operation.parameters.filter((one: Parameter) => one.in === 'header')) {
    const { name } = parameter;
    for (const value of wrongOfHeader[name.toLowerCase()] ?? []) {
      if (!shared.isNew(`header ${name}`, `header ${JSON.stringify(parameter)} ${value}`)) continue;
      yield {
        what: `${name}: ${value.slice(0, 40)}`,
        draft: { ...base, headers: { ...base.headers, [name]: value } },
        expected: invalid([name.toLowerCase()]),
      };
    }
  }
}

function* wrongIds(site: Site, operation: Operation, base: Draft, shared: Shared): Generator<Case> {
  if (!hasId(operation)) return;
  for (const id of refusedIds(site.otherIdOf(collectionOf(operation)))) {
    if (!shared.isNew('id', `id ${collectionOf(operation)} ${id}`)) continue;
    const draft = { ...base, path: pathWith(operation, id) };
    yield { what: `the id ${id.slice(0, 60)}`, draft, expected: { status: 404 } };
  }
}

/** Ids in a body that name nothing, or something else. */
function* wrongReferences(site: Site, operation: Operation, base: Draft): Generator<Case> {
  for (const { body, field } of bodiesOf(site, operation, base)) {
    const text = JSON.stringify(body);
    for (const match of text.matchAll(uuid)) {
      const [id] = match;
      const put = (other: string): string =>
        `${text.slice(0, match.index)}${other}${text.slice(match.index + id.length)}`;
      const path = pathIn(JSON.parse(put('@')), /@/g) ?? '';
      if (!path.startsWith(field)) continue;
      const ofAnotherType = Object.values(site.ids).find((one) => one !== id && !sameType(site, id, one));
      for (const other of [unknownId, ofAnotherType ?? unknownId]) {
        yield {
          what: `${path} names ${other === unknownId ? 'nothing' : 'something of another type'}`,
          draft: { ...base, body: put(other) },
          expected: { status: 400, names: [path], says: [other] },
        };
      }
    }
  }
}

/** The body of a draft, and with each field that it leaves out and that refers to something. */
function bodiesOf(
  { document, ids }: Site,
  operation: Operation,
  base: Draft,
): readonly { readonly body: object; readonly field: string }[] {
  if (operation.body === undefined) return [];
  const body = JSON.parse(String(base.body)) as object;
  const alternative = alternativesOf(document, operation.body).find((one) => fits(document, one, body));
  const optional = Object.entries(alternative?.properties ?? {})
    .filter(([key]) => !(key in body))
    .map(([key, schema]) => ({ body: { ...body, [key]: filled(document, schema, key, ids) }, field: key }));
  return [{ body, field: '' }, ...optional];
}

/** As a valid value, with an entry in every list. */
function filled(document: Document, schema: Schema, key: string, ids: RealIds): unknown {
  const value = validValue(document, schema, key, ids);
  const [list] = alternativesOf(document, schema);
  return list !== undefined && Array.isArray(value) && value.length === 0
    ? [validEntry(document, list, key, ids)]
    : value;
}

function sameType({ ids }: Site, one: string, other: string): boolean {
  const nodes = ['node_id', 'nodeId', 'listener_node_id', 'connector_node_id'].map((name) => ids[name]);
  return nodes.includes(one) && nodes.includes(other);
}

/** Where a text stands in a body. */
function pathIn(value: unknown, wanted: RegExp): string | undefined {
  if (typeof value === 'string') return value.search(wanted) < 0 ? undefined : '';
  const entries: readonly (readonly [string, unknown])[] = Array.isArray(value)
    ? value.map((one, index) => [`[${index}]`, one] as const)
    : isObject(value)
      ? Object.entries(value).map(([key, one]) => [key, one] as const)
      : [];
  for (const [part, one] of entries) {
    const found = pathIn(one, wanted);
    if (found !== undefined) return part + (found === '' || found.startsWith('[') ? found : `.${found}`);
  }
  return undefined;
}

/** Names that differ from an existing one by case or normalisation alone. */
function namesLike(name: string): readonly string[] {
  const forms = [name, name.toLowerCase(), name.toUpperCase()];
  const all = forms.flatMap((form) => [form, form.normalize('NFC'), form.normalize('NFD')]);
  return [...new Set([...all, name.normalize('NFC').replaceAll('\u00c5', '\u212b')])];
}

function* takenNames(site: Site, operation: Operation, base: Draft): Generator<Case> {
  const [schema] = operation.body === undefined ? [] : alternativesOf(site.document, operation.body);
  if (schema === undefined || roleFor(operation) === 'nobody') return;
  // The resource of this id has another name.
  if (!creates(operation) && !(operation.method === 'PUT' && hasId(operation))) return;
  for (const field of nameFields(schema)) {
    const taken = field === 'name' ? namesLike(site.takenName) : [site.takenUsername, site.takenUsername.toUpperCase()];
    for (const name of taken) {
      yield {
        what: `the ${field} ${encodeURIComponent(name)}, which is taken`,
        draft: { ...base, body: JSON.stringify({ ...JSON.parse(String(base.body)), [field]: name }) },
        expected: { status: 409, says: [`${field}: `] },
      };
    }
  }
}

interface Fault {
  readonly what: string;
  readonly expected: Expected;
  apply(draft: Draft): Draft;
}

/** In the order of the checks. */
function faultsOf(site: Site, operation: Operation): readonly Fault[] {
  const role = roleFor(operation);
  const faults: Fault[] = [];
  if (role !== 'nobody') {
    faults.push({
      what: 'no token',
      expected: { status: 401 },
      apply: (draft) => ({ ...draft, role: 'nobody' }),
    });
  }
  faults.push({
    what: unknownPath,
    expected: { status: role === 'nobody' ? 401 : 404 },
    apply: (draft) => ({ ...draft, path: `${draft.path}/walks/nowhere` }),
  });
  const allow = methodsOf(site, operation.path);
  faults.push({
    what: 'another method',
    expected: role === 'nobody' ? { status: 401 } : { status: 405, allow },
    apply: (draft) => ({ ...draft, method: 'PATCH' }),
  });
  if (role === 'operator' || role === 'admin') {
    faults.push({
      what: 'a role that may not',
      expected: { status: 403, says: [role] },
      apply: (draft) => ({ ...draft, role: role === 'operator' ? 'viewer' : 'operator' }),
    });
  }
  if (takesBody(operation)) {
    faults.push(
      {
        what: 'another content type',
        expected: { status: 415 },
        apply: (draft) => ({
          ...draft,
          body: draft.body ?? '{}',
          headers: { ...draft.headers, 'content-type': 'text/plain' },
        }),
      },
      { what: 'too large', expected: { status: 413 }, apply: (draft) => ({ ...draft, body: tooLargeFor(operation) }) },
    );
  }
  faults.push({
    what: 'an unknown query parameter',
    expected: invalid(['walks_nowhere']),
    apply: (draft) => ({ ...draft, query: [...draft.query, ['walks_nowhere', '1']] }),
  });
  if (hasId(operation)) {
    faults.push({
      what: 'an unknown id',
      expected: { status: 404 },
      apply: (draft) => ({
        ...draft,
        path: draft.path.replace(
          pathWith(operation, site.idOf(collectionOf(operation))),
          pathWith(operation, unknownId),
        ),
      }),
    });
  }
  if (has(operation, 'header', 'if-match')) {
    faults.push({
      what: 'a version that is not current',
      expected: { status: 412 },
      apply: (draft) => ({ ...draft, headers: { ...draft.headers, 'if-match': '"999999"' } }),
    });
  }
  return faults;
}

/** Each fault alone, and with each of the two that come next: the earlier one answers, so their order is that of all. */
function* pairsOfFaults(site: Site, operation: Operation, base: Draft): Generator<Case> {
  const faults = faultsOf(site, operation);
  for (const [index, first] of faults.entries()) {
    yield { what: first.what, draft: first.apply(base), expected: first.expected };
    for (const second of faults.slice(index + 1, index + 3)) {
      yield {
        what: `${first.what} and ${second.what}`,
        draft: first.apply(second.apply(base)),
        expected: first.expected,
      };
    }
  }
}

function methodsOf({ operations }: Site, path: string): readonly string[] {
  const methods = operations.filter((one) => one.path === path).map(({ method }) => method);
  // Beside /api, HEAD is what GET is.
  return path.startsWith('/api/') ? methods : [...new Set([...methods, 'HEAD'])];
}

function* wrongMethods(site: Site): Generator<Case> {
  // No route declares them, so the first path tells for all.
  const seldom = ['OPTIONS', 'PROPFIND', 'TRACE'];
  for (const path of new Set(site.operations.map((one) => one.path))) {
    const allow = methodsOf(site, path);
    const [operation] = site.operations.filter((one) => one.path === path);
    if (operation === undefined) continue;
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', ...seldom.splice(0)]) {
      if (allow.includes(method)) continue;
      yield {
        what: `${method} ${path}: not a method of this path`,
        draft: { method, path: pathWith(operation, 'x'), query: [], headers: {}, role: 'viewer', body: undefined },
        expected: { status: 405, allow },
      };
    }
  }
}

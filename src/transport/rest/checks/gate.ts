/**
 * The checks before the body is read: shutdown, token (401), path (404), method (405), role (403), media type (415). Body,
 * query and resource are checked later. Implements `docs/contract/rest.md#envelope`.
 */
import type { FastifyRequest } from 'fastify';
import type { AccountsHandlers, Caller } from '../../../commands/accounts-port.js';
import { roles } from '../../../domain/accounts/user.js';
import { plainIp } from '../../../kernel/addresses.js';
import { ServiceError, unreachable } from '../../../kernel/errors.js';
import type { RestApp, RestDeps } from '../deps.js';
import type { Access } from '../request-state.js';
import { collectMethods, routedPath } from './paths.js';
import { byCookie, reads, tokenOf, type OriginCheck } from './session-token.js';

type Authenticate = AccountsHandlers['authenticate'];

/** Adds the checks to every request, including those to unknown paths. */
export function installGate(app: RestApp, deps: RestDeps, requireOwnOrigin: OriginCheck): void {
  let closing = false;
  const methodsOf = collectMethods(app);
  app.decorateRequest('caller', null);
  app.addHook('preClose', async () => {
    closing = true;
  });
  app.addHook('onRequest', (request, reply, next) => {
    if (closing) {
      void reply.header('connection', 'close');
      throw new ServiceError('unavailable', 'the service is shutting down; nothing was written');
    }
    if (request.headers.host === undefined && request.raw.httpVersion !== '1.0') {
      throw new ServiceError('invalid_request', 'host: expected this header');
    }
    const path = routedPath(request);
    const api = path === '/api' || path.startsWith('/api/');
    if (api) void reply.header('cache-control', 'no-store');
    const needsToken = api && request.routeOptions.config.access !== 'login';
    const caller = needsToken ? callerOf(request, deps) : null;
    const admit = (found: Caller | null | undefined): void => {
      if (needsToken) request.caller = authenticated(found);
      requireMethod(request, path, methodsOf(path));
      requireEndpoint(request, requireOwnOrigin);
    };
    // Only a token that is new to this instance makes the request wait.
    if (caller instanceof Promise) return caller.then(admit);
    admit(caller);
    return next();
  });
  // A body may take a minute to arrive.
  app.addHook('preValidation', ({ method, caller }, _reply, next) => {
    if (!reads(method) && caller?.ended() === true) throw new ServiceError('unauthenticated', 'the token has ended');
    next();
  });
}

/** @throws ServiceError `not_found` when there is no such path, `method_not_allowed` when it has only other methods */
function requireMethod({ method }: FastifyRequest, path: string, allow: readonly string[] | undefined): void {
  if (allow?.includes(method) === true) return;
  // The root exists only for a browser's GET.
  if (allow === undefined || path === '/') throw noSuchPath();
  throw new ServiceError('method_not_allowed', `expected ${allow.join(' or ')}`, { hints: { allow } });
}

const noSuchPath = (): ServiceError => new ServiceError('not_found', 'no such path');

function requireEndpoint(request: FastifyRequest, requireOwnOrigin: OriginCheck): void {
  const { access, takes } = request.routeOptions.config;
  if (access === undefined) throw noSuchPath();
  if (!mayCall(access, request.caller)) {
    throw new ServiceError('forbidden', `expected the role ${access === 'admin' ? 'admin' : 'operator or admin'}`);
  }
  if (request.caller !== null && byCookie(request)) requireOwnOrigin(request);
  const program = request.caller?.apiToken ?? undefined;
  if (program !== undefined) requireForTokens(request, program.id);
  requireMediaType(request, takes !== 'none', takes === 'document');
}

/**
 * API tokens may not change accounts: a leaked one must not create others or lock people out.
 * @throws ServiceError `forbidden`
 */
function requireForTokens({ method, routeOptions: { url = '' }, params }: FastifyRequest, ownId: string): void {
  if (reads(method) || !url.startsWith('/api/auth/')) return;
  if (method === 'DELETE' && (params as { readonly id?: string }).id?.toLowerCase() === ownId) return;
  const may = method === 'DELETE' ? 'delete itself alone' : 'not do this';
  throw new ServiceError('forbidden', `an API token may ${may} under /api/auth; expected the token of a sign-in`);
}

/** The caller whom the token of the request authenticates. */
function callerOf(request: FastifyRequest, deps: RestDeps): ReturnType<Authenticate> {
  const token = tokenOf(request);
  return token === undefined ? undefined : deps.commands.accounts.authenticate(token, plainIp(request.ip));
}

function authenticated(caller: Caller | null | undefined): Caller {
  if (caller === undefined || caller === null) {
    throw new ServiceError('unauthenticated', 'expected a valid token in the header Authorization: Bearer <token>');
  }
  return caller;
}

function mayCall(access: Access, caller: Caller | null): boolean {
  switch (access) {
    case 'open':
    case 'login':
      return true;
    case 'anyone':
      return caller !== null;
    case 'operator':
    case 'admin':
      return caller !== null && roles.indexOf(caller.role) <= roles.indexOf(access);
    default:
      return unreachable(access);
  }
}

/** Refuses a wrong type before the body is read. An empty body needs none; a chunked one shows only later that it is empty. */
function requireMediaType({ method, headers }: FastifyRequest, takesJson: boolean, takesYaml: boolean): void {
  if (method === 'GET' || method === 'HEAD') return;
  if ((headers['content-encoding']?.toLowerCase() ?? 'identity') !== 'identity') {
    throw unsupported('a body without content-encoding');
  }
  const type = headers['content-type'];
  const wrongType = type === undefined ? takesJson : !isJson(type) && !(takesYaml && isYaml(type));
  const chunked = headers['transfer-encoding'] !== undefined;
  const hasBody = !chunked && Number(headers['content-length'] ?? '0') > 0;
  if (wrongType && (hasBody || (takesJson && (chunked || type !== undefined)))) throw unsupportedType();
}

/** True for `application/json`, with no charset or UTF-8. */
export const isJson = (contentType: string): boolean => isType('application/json', contentType);

/** The same for `application/yaml` (RFC 9512). */
export const isYaml = (contentType: string): boolean => isType('application/yaml', contentType);

function isType(wanted: string, contentType: string): boolean {
  const [type = '', ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase());
  return (
    type === wanted &&
    parameters.every((parameter) => {
      const [key, value] = parameter.split('=');
      return key !== 'charset' || value === 'utf-8' || value === 'utf8' || value === '"utf-8"';
    })
  );
}

/** The refusal of a body that is not JSON. */
export const unsupportedType = (): ServiceError => unsupported('content-type application/json in UTF-8');

function unsupported(what: string): ServiceError {
  return new ServiceError('unsupported_media_type', `expected ${what}`);
}

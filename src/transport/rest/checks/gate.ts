/**
 * The checks before a body is read: shutdown, token (401), path (404), method (405), role (403), media type (415). Not
 * those of body, query and resource, which come after. Implements `docs/contract/rest.md#envelope`.
 */
import type { FastifyRequest } from 'fastify';
import type { Caller, CommandHandlers } from '../../../commands/handlers-port.js';
import { roles } from '../../../domain/accounts/user.js';
import { ServiceError, unreachable } from '../../../kernel/errors.js';
import type { RestApp, RestDeps } from '../deps.js';
import { hasContent, isJson } from './media-type.js';
import type { Access } from '../request-state.js';
import { allowedMethods } from './route-table.js';
import type { KnownPath, RouteTable } from './route-table.js';

type Authenticate = CommandHandlers['accounts']['authenticate'];

/** A longer token cannot be one of this service and is not parsed. */
const bearerTokenChars = 4096;

/** Adds the checks to every request, including those to unknown paths. */
export function installGate(app: RestApp, deps: RestDeps, table: RouteTable): void {
  let closing = false;
  app.decorateRequest('caller', null);
  app.addHook('preClose', async () => {
    closing = true;
  });
  // Waits only for a token that is not known yet: a promise for each request would cost more than the checks.
  app.addHook('onRequest', (request, reply, next) => {
    if (closing) {
      void reply.header('connection', 'close');
      throw new ServiceError('unavailable', 'the service is shutting down; nothing was written');
    }
    const { pathname } = request;
    const api = pathname === '/api' || pathname.startsWith('/api/');
    if (api) void reply.header('cache-control', 'no-store');
    const path = table.find(pathname);
    const needsToken = api && path?.methods.get(request.method)?.access !== 'login';
    const caller = needsToken ? callerOf(request, deps) : null;
    if (!(caller instanceof Promise)) {
      pass(request, path, needsToken, caller);
      return next();
    }
    return caller.then((found) => pass(request, path, needsToken, found));
  });
}

function pass(
  request: FastifyRequest,
  path: KnownPath | undefined,
  needsToken: boolean,
  caller: Caller | null | undefined,
): void {
  if (needsToken) request.caller = authenticated(caller);
  if (path === undefined) throw new ServiceError('not_found', 'no such path');
  const endpoint = path.methods.get(request.method);
  if (endpoint === undefined) {
    const allow = allowedMethods(path);
    throw new ServiceError('method_not_allowed', `expected ${allow.join(' or ')}`, { hints: { allow } });
  }
  if (!mayCall(endpoint.access, request.caller)) {
    throw new ServiceError(
      'forbidden',
      `expected the role ${endpoint.access === 'admin' ? 'admin' : 'operator or admin'}`,
    );
  }
  requireMediaType(request, endpoint.takes === 'json');
}

/** Whom the request's token authenticates. */
function callerOf(request: FastifyRequest, deps: RestDeps): ReturnType<Authenticate> {
  const token = bearerToken(request.headers.authorization);
  return token === undefined ? undefined : deps.commands.accounts.authenticate(token);
}

function authenticated(caller: Caller | null | undefined): Caller {
  if (caller === undefined || caller === null) {
    throw new ServiceError('unauthenticated', 'expected a valid token in the header Authorization: Bearer <token>');
  }
  return caller;
}

/** The token of an `Authorization` header of the scheme Bearer, or undefined. */
export function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined || header.length > bearerTokenChars + 'Bearer '.length) return undefined;
  return /^Bearer +([A-Za-z0-9._~+/=-]+) *$/i.exec(header)?.[1];
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

/**
 * Refuses a wrong type before the body is read. An empty body needs none; whether a chunked one is empty, only its end
 * tells (`body.ts`).
 */
function requireMediaType(request: FastifyRequest, takesJson: boolean): void {
  if (request.method === 'GET' || request.method === 'HEAD') return;
  const { headers } = request;
  const type = headers['content-type'];
  if (headers['content-encoding'] !== undefined && headers['content-encoding'].toLowerCase() !== 'identity') {
    throw unsupported('a body without content-encoding');
  }
  const content = hasContent(headers);
  const wrongType = type === undefined ? takesJson : !isJson(type);
  if (content === 'some' && wrongType) throw unsupported('content-type application/json in UTF-8');
  if (takesJson && content === 'unknown' && wrongType) throw unsupported('content-type application/json in UTF-8');
  if (takesJson && type !== undefined && wrongType) throw unsupported('content-type application/json in UTF-8');
}

export function unsupported(what: string): ServiceError {
  return new ServiceError('unsupported_media_type', `expected ${what}`);
}

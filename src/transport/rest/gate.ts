/**
 * The checks before a body is read: shutdown, token (401), path (404), method (405), role (403), media type (415). Not
 * those of body, query and resource, which come after. Implements `docs/contract/rest.md#envelope`.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../commands/handlers-port.js';
import { roles } from '../../domain/accounts/user.js';
import { ServiceError, unreachable } from '../../kernel/errors.js';
import type { RestApp, RestDeps } from './deps.js';
import { hasContent, isJson } from './media-type.js';
import type { Access } from './request-state.js';
import { allowedMethods } from './route-table.js';
import type { RouteTable } from './route-table.js';

/** A longer token cannot be one of this service and is not parsed. */
const bearerTokenChars = 4096;

/** Adds the checks to every request, including those to unknown paths. */
export function installGate(app: RestApp, deps: RestDeps, table: RouteTable): void {
  let closing = false;
  app.decorateRequest('caller', null);
  app.addHook('preClose', async () => {
    closing = true;
  });
  app.addHook('onRequest', async (request, reply) => {
    if (closing) {
      void reply.header('connection', 'close');
      throw new ServiceError('unavailable', 'the service is shutting down; nothing was written');
    }
    await pass(request, reply, deps, table);
  });
}

async function pass(request: FastifyRequest, reply: FastifyReply, deps: RestDeps, table: RouteTable): Promise<void> {
  const { pathname } = request;
  const api = pathname === '/api' || pathname.startsWith('/api/');
  if (api) void reply.header('cache-control', 'no-store');
  const path = table.find(pathname);
  const endpoint = path?.methods.get(request.method);
  const needsToken = api && endpoint?.access !== 'login';
  if (needsToken) request.caller = await authenticated(request, deps);
  if (path === undefined) throw new ServiceError('not_found', 'no such path');
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

async function authenticated(request: FastifyRequest, deps: RestDeps): Promise<Caller> {
  const token = bearerToken(request.headers.authorization);
  const caller = token === undefined ? undefined : await deps.commands.accounts.authenticate(token);
  if (caller === undefined) {
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

/**
 * `x-request-id`: the caller's when it is valid, else a new one; events carry it as their correlation id. Also the path
 * of a request as the hooks need it. Implements `docs/contract/rest.md#consistency`.
 */
import type { IncomingMessage } from 'node:http';
import type { RestApp } from '../deps.js';

const requestIdChars = 128;
const valid = new RegExp(`^[A-Za-z0-9._:/+=@-]{1,${requestIdChars}}$`);

/** The caller's id, or a new one. */
export function requestId(request: Pick<IncomingMessage, 'headers'>, fresh: () => string): string {
  const id = request.headers['x-request-id'];
  return typeof id === 'string' && valid.test(id) ? id : fresh();
}

/** Without query and fragment. */
export function pathnameOf(url: string): string {
  const end = url.search(/[?#]/);
  return end < 0 ? url : url.slice(0, end);
}

/**
 * Takes the host from `GET http://host/path`, and escapes a path that does not decode, so that every check sees it as an unknown
 * path or a malformed id. The router would answer it, or a malformed host, before any hook. Used as fastify's `rewriteUrl`.
 */
export function decodableUrl(target: string): string {
  const url = target.replace(/^https?:\/\/[^/?]*/i, '');
  const path = pathnameOf(url);
  try {
    decodeURIComponent(path);
    return url;
  } catch {
    return path.replaceAll('%', '%25') + url.slice(path.length);
  }
}

export function installCorrelation(app: RestApp): void {
  app.decorateRequest('pathname', '');
  app.addHook('onRequest', (request, reply, next) => {
    request.pathname = pathnameOf(request.originalUrl);
    void reply.header('x-request-id', request.id);
    next();
  });
}

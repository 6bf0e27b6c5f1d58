/**
 * `x-request-id`, taken from the caller when it is sane, else made, and the URL as hooks need it. It is the correlation
 * id of the events that a command writes. Implements `docs/contract/rest.md#consistency`.
 */
import type { IncomingMessage } from 'node:http';
import type { RestApp } from './deps.js';

/** A longer id of a caller is replaced by a new one. */
const requestIdChars = 128;
const sane = new RegExp(`^[A-Za-z0-9._:/+=@-]{1,${requestIdChars}}$`);

/** The caller's id, or a new one. */
export function requestId(request: Pick<IncomingMessage, 'headers'>, fresh: () => string): string {
  const asked = request.headers['x-request-id'];
  return typeof asked === 'string' && sane.test(asked) ? asked : fresh();
}

function pathnameOf(url: string): string {
  const end = url.search(/[?#]/);
  return end < 0 ? url : url.slice(0, end);
}

/**
 * A path that does not decode is an unknown path or a malformed id, and goes the way of those through every check: the
 * router would answer it before any hook. Used as fastify's `rewriteUrl`.
 */
export function decodableUrl(url: string): string {
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
  app.addHook('onRequest', async (request, reply) => {
    request.pathname = pathnameOf(request.originalUrl);
    void reply.header('x-request-id', request.id);
  });
}

/**
 * The token of a request, from the header `Authorization` or a browser's cookie. Browsers attach the cookie to requests of any
 * page, so a change by cookie must come from a page of this host. `gate.ts` authenticates the token. Implements
 * `docs/contract/console.md#signing-in`.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { NewToken } from '../../../commands/accounts-port.js';
import { ServiceError } from '../../../kernel/errors.js';

export const sessionCookie = 'svc_session';

export const reads = (method: string): boolean => method === 'GET' || method === 'HEAD';

/** A longer token cannot be one of this service and is not parsed. */
const tokenChars = 4096;

/** The token of an `Authorization` header of the scheme Bearer, or undefined. */
export function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined || header.length > tokenChars + 'Bearer '.length) return undefined;
  return /^Bearer +([A-Za-z0-9._~+/=-]+) *$/i.exec(header)?.[1];
}

/** Whether the request brings its token in a cookie; the header takes precedence. */
export function byCookie({ headers }: FastifyRequest): boolean {
  return headers.authorization === undefined && cookiesOf(headers.cookie).length > 0;
}

/** The token of the request; undefined without one, or with two cookies, because another page may have planted one. */
export function tokenOf(request: FastifyRequest): string | undefined {
  if (!byCookie(request)) return bearerToken(request.headers.authorization);
  const [token, another] = cookiesOf(request.headers.cookie);
  return another === undefined ? bearerToken(`Bearer ${token}`) : undefined;
}

/** The values of all session cookies. */
function cookiesOf(header: string | undefined): readonly string[] {
  if (header === undefined) return [];
  return header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${sessionCookie}=`))
    .map((pair) => pair.slice(sessionCookie.length + 1));
}

/** Gives the browser the token, which no script can read. */
export function setSessionCookie(request: FastifyRequest, reply: FastifyReply, { token, expiresIn }: NewToken): void {
  void reply.header('set-cookie', cookie(request, token, expiresIn));
}

export function clearSessionCookie(request: FastifyRequest, reply: FastifyReply): void {
  void reply.header('set-cookie', cookie(request, '', 0));
}

function cookie(request: FastifyRequest, value: string, maxAgeSeconds: number): string {
  const secure = request.protocol === 'https' ? '; Secure' : '';
  return `${sessionCookie}=${value}; Max-Age=${maxAgeSeconds}; Path=/api; HttpOnly; SameSite=Strict${secure}`;
}

/** Refuses a change by cookie that another site's page may have asked for. @throws ServiceError `forbidden` */
export type OriginCheck = (request: FastifyRequest) => void;

/**
 * @param corsOrigins origins that may call from a browser; those on the request's own host are trusted
 * @param publicOrigin where people reach the console, trusted whatever `Host` says
 */
export function createOriginCheck(corsOrigins: readonly string[], publicOrigin: string | null = null): OriginCheck {
  return (request) => {
    if (reads(request.method)) return;
    const { origin } = request.headers;
    const own = originOf(`${request.protocol}://${request.headers.host ?? ''}`);
    const trusted = own === undefined ? [] : [own.origin, ...corsOrigins.filter(ofHost(own.hostname))];
    if (origin !== undefined && (origin === publicOrigin || trusted.includes(origin))) return;
    throw new ServiceError(
      'forbidden',
      `origin: a change by cookie must come from a page of ${own?.origin ?? 'this service'}; behind a proxy that ends TLS, SVC_TRUSTED_PROXIES must name it`,
    );
  };
}

/** Whether an origin is on a host, with any port and scheme. */
export const ofHost =
  (hostname: string) =>
  (origin: string): boolean =>
    originOf(origin)?.hostname === hostname;

export function originOf(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

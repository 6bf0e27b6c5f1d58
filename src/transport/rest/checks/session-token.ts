/**
 * The token that a request brings: in the header `Authorization`, or in the cookie of a browser. A browser sends its cookie
 * whoever asks, so a request by cookie that changes something must say that a page of this host made it. Whom a token
 * authenticates is asked elsewhere (`gate.ts`). Implements `docs/contract/console.md#signing-in`.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { NewToken } from '../../../commands/handlers-port.js';
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

/** Whether the request brings its token in a cookie: a header counts before it. */
export function byCookie({ headers }: FastifyRequest): boolean {
  return headers.authorization === undefined && cookiesOf(headers.cookie).length > 0;
}

/** The token that the request brings, or undefined: of two cookies of the name, one was planted by another page. */
export function tokenOf(request: FastifyRequest): string | undefined {
  if (!byCookie(request)) return bearerToken(request.headers.authorization);
  const [token, another] = cookiesOf(request.headers.cookie);
  return another === undefined ? bearerToken(`Bearer ${token}`) : undefined;
}

/** The values of all cookies of the name. */
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

/** @param corsOrigins origins that may call from a browser, of which those of the request's own host are trusted */
export function createOriginCheck(corsOrigins: readonly string[]): OriginCheck {
  return (request) => {
    if (reads(request.method)) return;
    const { origin } = request.headers;
    const own = originOf(`${request.protocol}://${request.headers.host ?? ''}`);
    const trusted = own === undefined ? [] : [own.origin, ...corsOrigins.filter(ofHost(own.hostname))];
    if (origin !== undefined && trusted.includes(origin)) return;
    throw new ServiceError(
      'forbidden',
      `origin: a change by cookie must come from a page of ${own?.origin ?? 'this service'}; behind a proxy that ends TLS, SVC_TRUSTED_PROXIES must name it`,
    );
  };
}

/** Whether an origin is of a host, on any port and by any scheme. */
export const ofHost =
  (hostname: string) =>
  (origin: string): boolean =>
    originOf(origin)?.hostname === hostname;

export function originOf(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

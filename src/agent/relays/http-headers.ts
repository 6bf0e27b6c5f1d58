/**
 * The headers of a request or response passing through this proxy, which removes hop-by-hop headers and adds what the
 * next hop must know. Lists are flat as in Node's `rawHeaders`: name, value, name, value. Pure. Implements RFC 9110,
 * sections 7.2 and 7.6.1, and RFC 9112, section 3.2.
 */
import { plainIp } from '../../kernel/addresses.js';

/** Hop-by-hop headers. Trailers are not passed on, so they are not announced either. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Headers that `Connection` cannot remove from a message. */
const kept: ReadonlySet<string> = new Set(['host', 'content-length', 'date']);

type Header = readonly [name: string, value: string];

function pairs(raw: readonly string[]): readonly Header[] {
  const list: Header[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) list.push([raw[at] ?? '', raw[at + 1] ?? '']);
  return list;
}

/** All values of a header, in one list. */
export function valuesOf(raw: readonly string[], name: string): readonly string[] {
  return pairs(raw).flatMap(([header, value]) => (header.toLowerCase() === name ? [value] : []));
}

/** The elements of a comma-separated header, in lower case. */
function tokensOf(raw: readonly string[], name: string): ReadonlySet<string> {
  const elements = valuesOf(raw, name).flatMap((value) => value.split(','));
  return new Set(elements.map((element) => element.trim().toLowerCase()));
}

/** Whether the body has a coding that it would lose on the way: only its chunks are made anew. */
export function isCoded(raw: readonly string[]): boolean {
  return [...tokensOf(raw, 'transfer-encoding')].some((coding) => coding !== 'chunked');
}

function endToEnd(raw: readonly string[]): readonly Header[] {
  const named = tokensOf(raw, 'connection');
  return pairs(raw).filter(([header]) => {
    const name = header.toLowerCase();
    return kept.has(name) || !(hopByHop.has(name) || named.has(name));
  });
}

export interface RequestTarget {
  /** In lower case, without port, brackets and final dot; an address in canonical form. */
  readonly host: string;
  /** The target for the next hop: a path that starts with a slash, or `*`. */
  readonly path: string;
  /** The `Host` header for the next hop. */
  readonly authority: string;
}

/** Parses the target of a request; undefined if it does not name exactly one host. */
export function readTarget(url: string, rawHeaders: readonly string[]): RequestTarget | undefined {
  const hosts = valuesOf(rawHeaders, 'host');
  if (hosts.length > 1) return undefined;
  // A URL in absolute form names the host, whatever the header says. With user information in it, it names none.
  const absolute = /^https?:\/\/([^/?#]+)(.*)$/is.exec(url);
  const authority = absolute?.[1] ?? hosts[0] ?? '';
  const rest = absolute === null ? url : (absolute[2] ?? '');
  const path = absolute !== null && !rest.startsWith('/') ? `/${rest}` : rest;
  const host = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d*)?$/i.exec(authority)?.[1];
  if (host === undefined || !(path.startsWith('/') || path === '*')) return undefined;
  return { host: plainIp(host.toLowerCase().replace(/^\[|\]$|\.$/g, '')), path: withoutDots(path), authority };
}

/** A segment of one or two dots, each possibly percent-encoded. */
const dotSegment = /\/(?:\.|%2e){1,2}(?=\/|$)/i;

/** Resolves dot segments (RFC 3986, section 5.2.4), so that no path leaves the prefix that it matches. */
function withoutDots(target: string): string {
  const [path = '', ...rest] = target.split(/(?=[?#])/);
  if (!dotSegment.test(path)) return target;
  const resolved: string[] = [];
  const segments = path.split('/').slice(1);
  for (const [index, segment] of segments.entries()) {
    const plain = segment.replaceAll(/%2e/gi, '.');
    const isDots = plain === '.' || plain === '..';
    if (plain === '..') resolved.pop();
    // A dot segment at the end leaves a path that ends with a slash.
    if (!isDots) resolved.push(segment);
    else if (index === segments.length - 1) resolved.push('');
  }
  return `/${resolved.join('/')}${rest.join('')}`;
}

/** The headers that this proxy sets: a client's own would be taken for those of a proxy. */
const replaced: ReadonlySet<string> = new Set([
  'host',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
]);

interface ForwardedRequest {
  readonly method: string;
  readonly rawHeaders: readonly string[];
  readonly authority: string;
  readonly clientAddress: string;
  /** The protocol to upgrade to, if the upgrade is passed on. */
  readonly upgrade: string | undefined;
}

/** Methods whose requests usually have no body. */
const withoutBody: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'DELETE']);

/** The headers for the next hop. */
export function requestHeaders(request: ForwardedRequest): string[] {
  const { rawHeaders, authority, clientAddress, upgrade } = request;
  const headers = endToEnd(rawHeaders).filter(([name]) => !replaced.has(name.toLowerCase()));
  const has = (name: string): boolean => headers.some(([header]) => header.toLowerCase() === name);
  const added: Header[] = [
    ['Host', authority],
    ['X-Forwarded-For', [...valuesOf(rawHeaders, 'x-forwarded-for'), plainIp(clientAddress)].join(', ')],
    ['X-Forwarded-Host', authority],
    ['X-Forwarded-Proto', 'http'],
  ];
  // The body's framing is stated again, because Node would otherwise guess it from the method.
  if (valuesOf(rawHeaders, 'transfer-encoding').length > 0) added.push(['Transfer-Encoding', 'chunked']);
  else if (!has('content-length') && !withoutBody.has(request.method)) added.push(['Content-Length', '0']);
  if (upgrade !== undefined) added.push(['Connection', 'Upgrade'], ['Upgrade', upgrade]);
  return [...headers, ...added].flat();
}

/** The headers of a response, for the client. */
export function responseHeaders(rawHeaders: readonly string[]): string[] {
  return endToEnd(rawHeaders).flat();
}

/** The headers of a request without its offer to upgrade, which a server may ignore. */
export function withoutUpgrade(rawHeaders: readonly string[]): string[] {
  const left = pairs(rawHeaders).filter(([name]) => !['upgrade', 'connection', settings].includes(name.toLowerCase()));
  const options = [...tokensOf(rawHeaders, 'connection')].filter(
    (option) => option !== 'upgrade' && option !== settings,
  );
  return [...left, ...(options.length > 0 ? [['Connection', options.join(', ')]] : [])].flat();
}

/** A header that comes with an offer to upgrade to HTTP/2. */
const settings = 'http2-settings';

/** The protocol that a request asks to upgrade to, in lower case. */
export function upgradeOf(rawHeaders: readonly string[]): string | undefined {
  if (!tokensOf(rawHeaders, 'connection').has('upgrade')) return undefined;
  return valuesOf(rawHeaders, 'upgrade').join(',').toLowerCase() || undefined;
}

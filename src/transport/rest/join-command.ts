/**
 * The line that makes a machine a node, and the addresses in it. Implements `docs/contract/joining.md#the-machines-side`, "The base
 * address" and "`command`".
 */
import type { FastifyRequest } from 'fastify';
import { isIPv6 } from 'node:net';
import { canonicalHost } from '../../kernel/addresses.js';
import { ServiceError } from '../../kernel/errors.js';
import { isPort } from '../../kernel/host-port.js';
import { originOf } from './checks/session-token.js';
import type { RestOptions } from './deps.js';

interface JoinAddresses {
  /** Where machines reach REST: an origin. */
  readonly base: string;
  /** Where agents connect. */
  readonly endpoint: string;
}

/**
 * @throws ServiceError `invalid_request` for a `Host` that is neither name nor address, if `SVC_PUBLIC_URL` is not set
 */
export function joinAddresses(
  request: Pick<FastifyRequest, 'protocol' | 'headers'>,
  { publicUrl, controlEndpoint }: Pick<RestOptions, 'publicUrl' | 'controlEndpoint'>,
): JoinAddresses {
  const base = originOf(publicUrl ?? `${request.protocol}://${hostOf(request.headers.host ?? '')}`);
  if (base === undefined) {
    const expected = 'expected a DNS name or an IP address, with or without a port; or set SVC_PUBLIC_URL';
    throw new ServiceError('invalid_request', `host: ${expected}`);
  }
  return { base: base.origin, endpoint: controlEndpoint(plainHost(base)) };
}

const plainHost = ({ hostname }: URL): string => hostname.replaceAll(/[[\]]/g, '');

/** A `Host` that may stand in a URL; empty for any other text. */
function hostOf(sent: string): string {
  const [, bracketed, plain = '', port] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(sent) ?? [];
  const host = canonicalHost(bracketed ?? plain);
  const isWell = host !== undefined && isIPv6(host) === (bracketed !== undefined);
  if (!isWell || (port !== undefined && !isPort(Number(port)))) return '';
  return sent.toLowerCase();
}

const loopback = /^(localhost|127(\.\d+){3}|::1)$/;

/** A text as one word of a POSIX shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/**
 * @param isServed whether this service serves the script and the program
 * @returns one line for a root shell. A program that came over plain http could be anybody's, so without https the
 * machine must have its own
 */
export function joinCommand({ base, endpoint }: JoinAddresses, token: string, isServed: boolean): string {
  const url = new URL(base);
  if (!isServed || (url.protocol !== 'https:' && !loopback.test(plainHost(url)))) {
    return `SVC_JOIN_TOKEN=${quoted(token)} gateway-agent join --endpoint ${quoted(endpoint)}`;
  }
  const script = quoted(`${base}/join.sh`);
  return `curl -fsSL --retry 9 ${script} | SVC_JOIN_TOKEN=${quoted(token)} sh -s -- --endpoint ${quoted(endpoint)}`;
}

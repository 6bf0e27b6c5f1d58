/**
 * `host:port` as text, IPv6 in brackets (`docs/contract/wire.md#configuration`). Names are not resolved. `addresses.ts`
 * has the canonical form that REST answers with.
 */
import { isIP, isIPv6 } from 'node:net';

export interface HostPort {
  /** An IP literal without brackets, or a DNS name. */
  readonly host: string;
  readonly port: number;
}

interface SplitHostPort {
  readonly host: string;
  readonly bracketed: boolean;
  /** One to five digits. */
  readonly port: string;
}

/** Splits `host:port` or `[host]:port` without validating the parts; undefined when the text has another form. */
export function splitHostPort(text: string): SplitHostPort | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const [, bracketed, plain = '', port = ''] = match;
  return { host: bracketed ?? plain, bracketed: bracketed !== undefined, port };
}

const namePattern = /^(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}))*\.?$/;

/** Parses `host:port` or `[ipv6]:port`; undefined for any other text, or when the port is not 1..65535. */
export function parseHostPort(text: string): HostPort | undefined {
  const parts = splitHostPort(text);
  if (parts === undefined) return undefined;
  const { host, bracketed } = parts;
  const port = Number(parts.port);
  if (!isPort(port)) return undefined;
  if (bracketed) return isIPv6(host) ? { host, port } : undefined;
  return isIP(host) === 4 || (namePattern.test(host) && !/^[\d.]+$/.test(host)) ? { host, port } : undefined;
}

export function formatHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

export function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}

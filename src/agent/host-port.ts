/**
 * `host:port` as it stands in rules and settings, IPv6 in brackets (`docs/contract/wire.md`, end). Text only: names are not resolved.
 */
import { isIP, isIPv6 } from 'node:net';

export interface HostPort {
  /** IP literal without brackets, or a DNS name. */
  readonly host: string;
  readonly port: number;
}

const namePattern = /^(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}))*\.?$/;

/** Reads `host:port` or `[ipv6]:port`; undefined when it is neither, or the port is not 1..65535. */
export function parseHostPort(text: string): HostPort | undefined {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const [, bracketed, plain = '', digits] = match;
  const port = Number(digits);
  if (!isPort(port)) return undefined;
  if (bracketed !== undefined) return isIPv6(bracketed) ? { host: bracketed, port } : undefined;
  return isIP(plain) === 4 || (namePattern.test(plain) && !/^[\d.]+$/.test(plain)) ? { host: plain, port } : undefined;
}

export function formatHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** True for 1..65535. */
export function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}

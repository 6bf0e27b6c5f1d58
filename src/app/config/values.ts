/**
 * Parsers for the values of variables: addresses, whole numbers, lists, keys. Each error says what was expected.
 * `variables.ts` says which variable has which. Implements `docs/contract/configuration.md#configuration`.
 */
import { isIP } from 'node:net';
import { z } from 'zod';
import { canonicalRange } from '../../kernel/cidr.js';
import { parseHostPort, splitHostPort, type HostPort } from '../../kernel/host-port.js';
import { limits } from '../../kernel/limits.js';
import { x25519PairOf, type X25519KeyPair } from '../../kernel/crypto/crypto.js';
import { plainMailAddress } from '../../domain/webhook/webhook.js';
import { readEndpoint } from '../../channel/reality/endpoint.js';
import { isServerName, isShortId, readKey } from '../../channel/reality/text-forms.js';

export const listen = z.string().transform((text, context): HostPort => {
  const { host = '', port: digits } = splitHostPort(text) ?? {};
  const port = Number(digits);
  if (isIP(host) === 0 && host !== 'localhost') context.addIssue('expected address:port, an IPv6 address in brackets');
  else if (!(port <= 65_535)) context.addIssue('expected a port from 0 to 65535');
  return { host, port };
});

export const integer = (min: number, max: number) =>
  z.string().transform((text, context): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      context.addIssue(`expected a whole number from ${min} to ${max}`);
    return value;
  });

export const share = z.string().transform((text, context): number => {
  const value = Number(text);
  if (!(value > 0 && value <= 1)) context.addIssue('expected a number above 0 and at most 1');
  return value;
});

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== ''),
);

export const cidrs = list.superRefine((entries, context) => {
  for (const entry of entries) {
    if (canonicalRange(entry) === undefined) context.addIssue(`expected comma-separated CIDRs, got "${entry}"`);
  }
});

export const origins = list.superRefine((entries, context) => {
  for (const entry of entries) {
    if (!URL.canParse(entry) || new URL(entry).origin !== entry)
      context.addIssue(`expected comma-separated origins, got "${entry}"`);
  }
});

export const budget = z.string().transform((text, context): { perSecond: number; burst: number } => {
  const match = /^(\d+(?:\.\d+)?)\/(\d+)$/.exec(text);
  const [perSecond, burst] = [Number(match?.[1] ?? 0), Number(match?.[2] ?? 0)];
  if (!(perSecond > 0) || burst < 1) context.addIssue('expected failures per second and burst, as in 5/50');
  return { perSecond, burst };
});

export const realityKey = z.string().transform((text, context): X25519KeyPair => {
  const bytes = readKey(text);
  if (bytes !== undefined) return x25519PairOf(bytes);
  context.addIssue('expected 32 bytes in base64url without padding, as reality:keygen prints them');
  return z.NEVER;
});

export const serverNames = list.superRefine((entries, context) => {
  if (entries.length === 0) context.addIssue('expected comma-separated host names');
  for (const entry of entries)
    if (!isServerName(entry)) context.addIssue(`expected comma-separated host names, got "${entry}"`);
});

export const shortIds = list.superRefine((entries, context) => {
  const expected = `expected comma-separated short ids, each an even number of 2 to ${limits.rest.shortIdDigits} hexadecimal digits`;
  if (entries.length === 0) context.addIssue(expected);
  for (const entry of entries) if (!isShortId(entry)) context.addIssue(`${expected}, got "${entry}"`);
});

export const target = z.string().transform((text, context): HostPort => {
  const parsed = parseHostPort(text);
  if (parsed !== undefined) return parsed;
  context.addIssue('expected host:port, an IPv6 address in brackets');
  return z.NEVER;
});

export const path = z.string().min(1, 'expected a path');

export const publicUrl = z.string().transform((text, context): string => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain =
    url !== undefined && ['http:', 'https:'].includes(url.protocol) && [url.origin, `${url.origin}/`].includes(text);
  if (!isPlain) context.addIssue('expected http:// or https:// and a host, without a path');
  return url?.origin ?? '';
});

export const controlEndpoint = z.string().superRefine((text, context) => {
  const endpoint = readEndpoint(text);
  if (typeof endpoint === 'string') context.addIssue(endpoint);
});

export const smtpUrl = z.string().superRefine((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && ['smtp:', 'smtps:'].includes(url.protocol) && url.hostname !== '';
  if (!isPlain || !['', '/'].includes(url.pathname) || url.search !== '' || url.hash !== '')
    return context.addIssue(
      'expected smtp:// or smtps://, a host, and user and password where the server asks for them',
    );
  if (url.username === '' && url.password !== '') return context.addIssue('expected a user before the password');
  if (!isEncoded(url.username) || !isEncoded(url.password)) {
    context.addIssue('expected a user and a password in which % is written %25, as in every URL');
  }
});

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** A plain address: `gateway@example.com`. */
export const mailAddress = z.string().regex(plainMailAddress, 'expected an address such as gateway@example.com');

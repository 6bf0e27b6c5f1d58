/**
 * The building blocks of request schemas: bounded strings, integers, hosts, endpoints, names. The error of each says
 * what was expected; each brings its value into canonical form and puts its bounds into the OpenAPI document. The
 * schemas of resources stand beside their handlers. Implements `docs/contract/rest.md#envelope`.
 */
import { z } from 'zod';
import {
  canonicalDnsName,
  canonicalEndpoint,
  canonicalIp,
  canonicalNamePattern,
  canonicalUnicastIp,
} from '../../../kernel/addresses.js';
import { faultOfName } from '../../../domain/resource/name.js';
import { nfc } from '../../../kernel/compare-text.js';
import { isUuid } from '../../../kernel/ids.js';
import { limits } from '../../../kernel/limits.js';
import { documented, sample } from './documented.js';
import { expected, readAs } from './validation.js';

const loneSurrogate = /\p{Surrogate}/u;

/** A string of `min` to `max` characters (code points), well-formed Unicode. @param counted the form whose characters count */
export function text(min: number, max: number, counted = (value: string): string => value) {
  const error = expected(
    min === 0 ? `a string of at most ${max} characters` : `a string of ${min} to ${max} characters`,
  );
  return z
    .string({ error })
    .refine(
      (given) => {
        // No character of a normal form stands for more than four.
        if (given.length > 8 * max) return false;
        const value = counted(given);
        // A code point is one or two code units, so the code points of most strings need not be counted.
        if (value.length > 2 * max || value.length < min) return false;
        const certain = value.length <= max && value.length >= 2 * min;
        const length = certain ? value.length : [...value].length;
        return length >= min && length <= max && !loneSurrogate.test(value);
      },
      { error },
    )
    .meta({ minLength: min, maxLength: max });
}

/** Text that is brought into NFC, and counted in it. */
export const nfcText = (min: number, max: number) => text(min, max, nfc).overwrite(nfc);

/**
 * In NFC. The domain (`src/domain/resource/name.ts`) says what is wrong with a new name, because it knows the old one.
 */
export const name = nfcText(1, limits.rest.nameChars);
export const description = text(0, limits.rest.descriptionChars).nullable();

/** A JSON integer from `min` to `max`. */
export function integer(min: number, max: number) {
  const error = expected(`an integer from ${min} to ${max}`);
  return z.int({ error }).min(min, { error }).max(max, { error });
}

export const port = integer(1, 65_535);

/** The `listen_addr` of a hop that gives none. */
export const anyAddress = '0.0.0.0';

export function boolean() {
  return z.boolean({ error: expected('true or false') });
}

/** A string in its canonical form. @param read gives that form, or undefined for a string that is not `what` */
export function canonical(what: string, read: (value: string) => string | undefined) {
  const error = expected(what);
  return z
    .string({ error })
    .transform(readAs(what, (value: string) => (value.length > limits.rest.stringChars ? undefined : read(value))))
    .meta({ maxLength: limits.rest.stringChars, description: what });
}

/**
 * Text whose form the schema cannot express, so it has no minimum length: the code that reads it checks the form.
 * @param what sentences and the document call it
 */
export const formedText = (what: string) =>
  canonical(`${what} of at most ${limits.rest.stringChars} characters`, (value) => value);

export const uuid = canonical('a UUID in lower case', (value) => (isUuid(value) ? value : undefined)).meta({
  format: 'uuid',
  examples: [sample.entryNode],
});
/** Patterns that every value matches, for generated clients; `canonical` says exactly what is accepted. */
const patterns = {
  ip: '^([0-9.]+|[0-9A-Fa-f:.]+)$',
  host: '^[0-9A-Za-z_.:-]+$',
  endpoint: '^([0-9A-Za-z_.-]+|\\[[0-9A-Fa-f:.]+\\]):[1-9][0-9]{0,4}$',
  dnsName: '^[0-9A-Za-z_]([0-9A-Za-z_.-]*[0-9A-Za-z_])?$',
  namePattern: '^(\\*\\.)?[0-9A-Za-z_]([0-9A-Za-z_.-]*[0-9A-Za-z_])?$',
} as const;
export const cidrPattern = '^[0-9A-Fa-f:.]+/[0-9]{1,3}$';

export const ip = canonical('an IPv4 or IPv6 address', canonicalIp).meta({
  pattern: patterns.ip,
  examples: ['0.0.0.0'],
});
export const listenIp = canonical('a unicast IPv4 or IPv6 address', canonicalUnicastIp).meta({
  pattern: patterns.ip,
  examples: ['0.0.0.0'],
});
export const host = canonical(
  'a host name or a unicast IP address',
  (text) => canonicalUnicastIp(text) ?? canonicalDnsName(text),
).meta({ pattern: patterns.host });
export const endpoint = canonical('host:port, with an IPv6 address in brackets', canonicalEndpoint).meta({
  pattern: patterns.endpoint,
});
export const dnsName = canonical('a DNS name', canonicalDnsName).meta({ pattern: patterns.dnsName });
export const namePattern = canonical(
  'a DNS name, which may start with one wildcard label (*.a.b)',
  canonicalNamePattern,
).meta({ pattern: patterns.namePattern });

/** Base64 of exactly `size` bytes, padded, or base64url without padding; without stray bits. */
export function base64(size: number, encoding: 'base64' | 'base64url' = 'base64') {
  return canonical(`${encoding} of ${size} bytes`, (value) => {
    const bytes = Buffer.from(value, encoding);
    return bytes.length === size && bytes.toString(encoding) === value ? value : undefined;
  });
}

/** A list of `min` to `max` entries. */
export function list<T extends z.ZodType>(entry: T, min = 0, max: number = limits.rest.listEntries) {
  const error = expected(min === 0 ? `a list of at most ${max} entries` : `a list of ${min} to ${max} entries`);
  return z.array(entry, { error }).min(min, { error }).max(max, { error });
}

/** A list of `min` to `max` names, each once. @param what what sentences call an entry */
export function distinct<T extends z.ZodType<string>>(entry: T, min = 0, what = 'name', max?: number) {
  return list(entry, min, max).superRefine((values, ctx) => {
    const seen = new Set<string>();
    for (const [index, value] of values.entries()) {
      if (seen.has(value)) ctx.addIssue({ code: 'custom', path: [index], message: `expected each ${what} once` });
      seen.add(value);
    }
  });
}

/** The body of a request; unknown fields are refused. */
export function body<S extends z.core.$ZodLooseShape>(shape: S) {
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'invalid_type' ? 'expected a JSON object' : undefined),
  });
}

/** An object inside a body; unknown fields are refused. */
export function object<S extends z.core.$ZodLooseShape>(shape: S) {
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'invalid_type' ? expected('an object')(issue) : undefined),
  });
}

export function oneOf<const T extends readonly [string, ...string[]]>(values: T) {
  return z.enum(values, { error: expected(values.map((value) => `"${value}"`).join(' or ')) });
}

export const labelKey = nfcText(1, limits.rest.labelKeyChars);

const isLabelKey = (key: string): boolean => !key.includes(':') && labelKey.safeParse(key).success;
const aLabelKey = `a key of 1 to ${limits.rest.labelKeyChars} characters without ":"`;

/** The key of a label, as a filter. */
export const labelKeyFilter = canonical(aLabelKey, (value) => (isLabelKey(value) ? nfc(value) : undefined)).meta({
  minLength: 1,
  maxLength: limits.rest.labelKeyChars,
  pattern: '^[^:]*$',
});

export const labels = z
  .record(z.string(), text(0, limits.rest.stringChars, nfc), { error: expected('an object of strings') })
  .superRefine((value, ctx) => {
    const keys = Object.keys(value);
    if (keys.length > limits.rest.labels) {
      ctx.addIssue({ code: 'custom', message: `expected at most ${limits.rest.labels} labels` });
    }
    const invalid = keys.find((key) => !isLabelKey(key));
    if (invalid !== undefined) {
      ctx.addIssue({
        code: 'custom',
        path: [invalid],
        message: `expected ${aLabelKey}`,
      });
    }
    for (const [key, words] of Object.entries(value)) {
      const fault = faultOfName(key) ?? (words === '' ? undefined : faultOfName(words));
      if (fault !== undefined && key !== invalid) ctx.addIssue({ code: 'custom', path: [key], message: fault });
    }
  })
  .overwrite((value) => Object.fromEntries(Object.entries(value).map(([key, words]) => [nfc(key), nfc(words)])))
  .meta({
    maxProperties: limits.rest.labels,
    propertyNames: { minLength: 1, maxLength: limits.rest.labelKeyChars, pattern: '^[^:]*$' },
  });

/** The TLS from a gateway to an upstream, with at least one pin. */
export const upstreamTls = object({
  server_name: documented(dnsName, 'Name that the gateway asks for and the certificate must have', 'app.example'),
  spki_pins_sha256: documented(
    list(base64(32), 1),
    "Base64 of the SHA-256 of the certificate's public key; one of them must match",
    [sample.pin],
  ),
}).meta({ id: 'UpstreamTls', description: 'The TLS from a gateway to an upstream, with at least one pin' });

/** A short id of REALITY. */
export const shortId = canonical(
  `hexadecimal of an even number of digits, at most ${limits.rest.shortIdDigits}`,
  (value) => {
    const fits = value.length <= limits.rest.shortIdDigits && value.length % 2 === 0 && /^[0-9a-fA-F]*$/.test(value);
    return fits ? value.toLowerCase() : undefined;
  },
);

/** A REALITY server that a gateway dials. */
export const upstreamReality = object({
  outer: documented(oneOf(['tcp', 'quic']), 'What it is dialled over; `quic` carries udp too', 'tcp'),
  public_key: documented(base64(32, 'base64url'), 'Its X25519 public key, base64url', sample.publicKey),
  server_name: documented(dnsName, 'Name that the gateway asks for', 'www.example'),
  short_id: documented(shortId, 'Short id, hexadecimal; may be empty', '0a1b2c3d'),
}).meta({ id: 'UpstreamReality', description: 'A REALITY server that a gateway dials' });

/**
 * The log of the service: JSON lines on standard output. Callers can pass it only words and numbers
 * (`src/kernel/logger.ts`). As a second defence, it masks fields with a secret's name, and anything inside a text that
 * looks like a secret. Each part decides what it logs. `docs/reference/log.md` describes the lines.
 */
import { pino, type DestinationStream } from 'pino';
import { logOutput } from '../kernel/log-output.js';
import type { LogFields, Logger } from '../kernel/logger.js';

export interface ServiceLog extends Logger {
  fatal(fields: LogFields, message: string): void;
}

/** Fields that are masked by name; nothing in this program logs them. */
const secretFields: ReadonlySet<string> = new Set([
  'password',
  'current_password',
  'new_password',
  'token',
  'authorization',
  'cookie',
  'psk',
  'control_psk',
  'secret',
  'private_key',
  'private_key_pem',
  'master_key',
  'body',
  'headers',
]);
/**
 * A control PSK, a join token, an API token, the secret of a webhook, a REST token, a private key, an Authorization header, the user
 * and password of a URL.
 */
const secretTexts =
  /svc(?:psk1|join1|at)_[\w-]+|whsec_[\w+/=-]+|eyJ[\w-]+\.[\w-]+\.[\w-]+|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(-----END [A-Z ]*PRIVATE KEY-----)?|\bBearer +\S+|(?<=:\/\/)[^\s/@]+@/g;
const mask = '***';
/** A cheap check first: nearly all texts are ids and paths. */
const suspicious = /svc(?:psk1|join1|at)_|whsec_|eyJ|PRIVATE KEY|Bearer|@/;
/** Shorter texts cannot contain any of these. */
const shortestSecret = 12;
/** Longest field; a stack is shorter. */
const textChars = 8_192;

/** @param destination instead of standard output */
export function createServiceLog(level: string, destination?: DestinationStream): ServiceLog {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }), log: plain },
  };
  return pino(options, destination ?? logOutput(process.env));
}

/** The fields in a form that may be written, even if a caller that is not type-checked passes something else. */
function plain(fields: object): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    // Not with pino's `redact`, which copies every line and costs more than all the rest.
    const text = secretFields.has(name) ? mask : plainValue(value);
    if (text !== undefined) shown[name] = text;
  }
  return shown;
}

function plainValue(value: unknown): unknown {
  switch (typeof value) {
    case 'string':
      return masked(value);
    case 'number':
    case 'boolean':
      return value;
    case 'object':
      if (value === null) return null;
      if (Array.isArray(value)) {
        return value.flatMap((item) => (typeof item === 'object' ? [] : [plainValue(item)]));
      }
      // Byte arrays contain numbers, too.
      if (Object.getPrototypeOf(value) !== Object.prototype) return undefined;
      return Object.fromEntries(Object.entries(value).filter(([, number]) => typeof number === 'number'));
    default:
      return undefined;
  }
}

function masked(text: string): string {
  if (text.length < shortestSecret) return text;
  const short = text.length > textChars ? `${text.slice(0, textChars)}…` : text;
  return suspicious.test(short) ? short.replace(secretTexts, mask) : short;
}

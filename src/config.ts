/**
 * Reads the environment into a typed config, once. Every problem names its variable and what was expected; the value of a
 * secret never appears. Implements `docs/contract/configuration.md#configuration`.
 */
import { X509Certificate, createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { isIP } from 'node:net';
import { z } from 'zod';
import { isPassword } from './domain/accounts/rules.js';
import { parseHostPort, splitHostPort } from './kernel/host-port.js';
import type { HostPort } from './kernel/host-port.js';
import { limits } from './kernel/limits.js';
import { importX25519Private } from './kernel/x25519.js';
import type { X25519KeyPair } from './kernel/x25519.js';
import { isServerName, isShortId, readKey } from './reality/text-forms.js';
import type { RealitySettings } from './transport/listener/reality/settings.js';

export interface Config {
  readonly http: {
    readonly listen: HostPort;
    readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
    readonly corsOrigins: readonly string[];
    readonly trustedProxies: readonly string[];
    readonly metricsToken: string | undefined;
  };
  readonly agents: {
    readonly listen: HostPort;
    readonly rekeySeconds: number;
    readonly failuresPerAddress: { readonly perSecond: number; readonly burst: number };
    readonly pendingSessions: number;
    readonly handshakeCpuShare: number;
    readonly maxConnections: number;
    /** CIDRs of TCP balancers that begin each connection with a PROXY protocol v2 header. */
    readonly proxyFrom: readonly string[];
    /** Undefined: agents speak h2c. */
    readonly reality: RealitySettings | undefined;
  };
  readonly dataDir: string;
  /** `esdb://…` or `kurrentdb://…`; undefined: the log is in the data folder. */
  readonly eventStoreUrl: string | undefined;
  /** `public`: without the private parts of the client package of EventStoreDB. */
  readonly eventStoreClient: 'fast' | 'public';
  /** `mongodb://…/database`; undefined: the read models are in the data folder. */
  readonly mongoUrl: string | undefined;
  readonly masterKey: { readonly inline: string | undefined; readonly file: string | undefined };
  readonly adminPassword: string | undefined;
  readonly tokenTtlSeconds: number;
  readonly logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';
}

/** The environment cannot be used; the message has one line per problem. */
export class ConfigError extends Error {
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
  }
}

const secrets: ReadonlySet<string> = new Set([
  'SVC_MASTER_KEY',
  'SVC_EVENTSTORE_URL',
  'SVC_MONGODB_URL',
  'SVC_ADMIN_PASSWORD',
  'SVC_METRICS_TOKEN',
  'SVC_REALITY_PRIVATE_KEY',
]);

const listen = z.string().transform((text, context): HostPort => {
  const { host = '', port: digits } = splitHostPort(text) ?? {};
  const port = Number(digits);
  if (isIP(host) === 0 && host !== 'localhost') context.addIssue('expected address:port, an IPv6 address in brackets');
  else if (!(port <= 65_535)) context.addIssue('expected a port from 0 to 65535');
  return { host, port };
});

const integer = (min: number, max: number) =>
  z.string().transform((text, context): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      context.addIssue(`expected a whole number from ${min} to ${max}`);
    return value;
  });

const share = z.string().transform((text, context): number => {
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

const cidrs = list.superRefine((entries, context) => {
  for (const entry of entries) {
    const [address = '', bits, ...more] = entry.split('/');
    const version = isIP(address);
    const maxBits = version === 4 ? 32 : 128;
    const areBits = bits === undefined || (/^\d+$/.test(bits) && Number(bits) <= maxBits);
    if (version === 0 || !areBits || more.length > 0 || address.includes('%')) {
      context.addIssue(`expected comma-separated CIDRs, got "${entry}"`);
    }
  }
});

const origins = list.superRefine((entries, context) => {
  for (const entry of entries) {
    if (!URL.canParse(entry) || new URL(entry).origin !== entry)
      context.addIssue(`expected comma-separated origins, got "${entry}"`);
  }
});

const budget = z.string().transform((text, context): { perSecond: number; burst: number } => {
  const match = /^(\d+(?:\.\d+)?)\/(\d+)$/.exec(text);
  const [perSecond, burst] = [Number(match?.[1] ?? 0), Number(match?.[2] ?? 0)];
  if (!(perSecond > 0) || burst < 1) context.addIssue('expected failures per second and burst, as in 5/50');
  return { perSecond, burst };
});

const realityKey = z.string().transform((text, context): X25519KeyPair => {
  const bytes = readKey(text);
  if (bytes !== undefined) return importX25519Private(bytes);
  context.addIssue('expected 32 bytes in base64url without padding, as npm run reality:keygen prints them');
  return z.NEVER;
});

const serverNames = list.superRefine((entries, context) => {
  if (entries.length === 0) context.addIssue('expected comma-separated host names');
  for (const entry of entries)
    if (!isServerName(entry)) context.addIssue(`expected comma-separated host names, got "${entry}"`);
});

const shortIds = list.superRefine((entries, context) => {
  const expected = `expected comma-separated short ids, each an even number of 2 to ${limits.rest.shortIdDigits} hexadecimal digits`;
  if (entries.length === 0) context.addIssue(expected);
  for (const entry of entries) if (!isShortId(entry)) context.addIssue(`${expected}, got "${entry}"`);
});

const target = z.string().transform((text, context): HostPort => {
  const parsed = parseHostPort(text);
  if (parsed !== undefined) return parsed;
  context.addIssue('expected host:port, an IPv6 address in brackets');
  return z.NEVER;
});

const path = z.string().min(1, 'expected a path');

const schema = z.object({
  SVC_HTTP_LISTEN_ADDR: listen.prefault('0.0.0.0:8081'),
  SVC_HTTP_TLS_CERT_FILE: path.optional(),
  SVC_HTTP_TLS_KEY_FILE: path.optional(),
  SVC_HTTP_CORS_ORIGINS: origins.prefault(''),
  SVC_TRUSTED_PROXIES: cidrs.prefault(''),
  SVC_METRICS_TOKEN: z.string().min(8, 'expected at least 8 characters').optional(),
  SVC_REALITY_LISTEN_ADDR: listen.prefault('0.0.0.0:8443'),
  SVC_REALITY_PRIVATE_KEY: realityKey.optional(),
  SVC_REALITY_SERVER_NAMES: serverNames.optional(),
  SVC_REALITY_SHORT_IDS: shortIds.optional(),
  SVC_REALITY_TARGET: target.optional(),
  SVC_REALITY_MAX_TIME_DIFF_MS: integer(1000, 3_600_000).prefault('60000'),
  SVC_REALITY_ALLOW_H2C: z.enum(['true', 'false'], 'expected true or false').default('false'),
  SVC_DATA_DIR: path.prefault('./data'),
  // Both may contain a password: their values are never printed.
  SVC_EVENTSTORE_URL: z
    .string()
    .regex(/^(esdb|kurrentdb|kdb|kurrent)(\+discover)?:\/\/./i, 'expected esdb://… or kurrentdb://…')
    .optional(),
  SVC_EVENTSTORE_CLIENT: z.enum(['fast', 'public'], 'expected fast or public').default('fast'),
  SVC_MONGODB_URL: z
    .string()
    .regex(/^mongodb(\+srv)?:\/\/[^/]+\/[^?]/, 'expected mongodb://…/database')
    .optional(),
  SVC_MASTER_KEY: z.string().optional(),
  SVC_MASTER_KEY_FILE: path.optional(),
  SVC_ADMIN_PASSWORD: z
    .string()
    .refine(
      isPassword,
      `expected ${limits.accounts.passwordChars.min} to ${limits.accounts.passwordChars.max} characters`,
    )
    .optional(),
  SVC_TOKEN_TTL_SECS: integer(60, 31_536_000).prefault('43200'),
  SVC_CONTROL_REKEY_INTERVAL_SECS: integer(10, 31_536_000).prefault('21600'),
  SVC_LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal'], 'expected trace, debug, info, warn, error or fatal')
    .default('info'),
  SVC_ADMISSION_FAILURES_PER_ADDRESS: budget.prefault('5/50'),
  SVC_PENDING_SESSIONS: integer(1, 1_000_000).prefault('8192'),
  SVC_HANDSHAKE_CPU_SHARE: share.prefault('0.5'),
  SVC_MAX_CONNECTIONS: integer(1, 1_000_000).prefault('20000'),
  SVC_AGENT_PROXY_FROM: cidrs.prefault(''),
});

/** Together they turn REALITY on. */
const realityNames = [
  'SVC_REALITY_PRIVATE_KEY',
  'SVC_REALITY_SERVER_NAMES',
  'SVC_REALITY_SHORT_IDS',
  'SVC_REALITY_TARGET',
] as const;

type Variables = z.output<typeof schema>;
type Environment = { readonly [name: string]: string | undefined };

/** An empty variable counts as not set: orchestrators pass it for one that is missing. */
function withoutEmpty(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name, value]) => name.startsWith('SVC_') && value !== ''));
}

function printable(name: string, value: string | undefined): string {
  if (value === undefined) return 'not set';
  return secrets.has(name) ? '(secret)' : JSON.stringify(value);
}

function parse(env: Environment): Variables {
  const given = withoutEmpty(env);
  const problems: string[] = [];
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const name = String(issue.path[0]);
      problems.push(`${name}: got ${printable(name, given[name])}: ${issue.message}`);
    }
  }
  const has = (name: string): boolean => given[name] !== undefined;
  if (has('SVC_HTTP_TLS_CERT_FILE') !== has('SVC_HTTP_TLS_KEY_FILE')) {
    problems.push('SVC_HTTP_TLS_CERT_FILE and SVC_HTTP_TLS_KEY_FILE: expected both or neither');
  }
  const missing = realityNames.filter((name) => !has(name));
  if (missing.length > 0 && missing.length < realityNames.length) {
    problems.push(`${missing.join(', ')}: required, because ${realityNames.filter(has).join(', ')} is set`);
  }
  const external = has('SVC_EVENTSTORE_URL') || has('SVC_MONGODB_URL');
  if (external && !has('SVC_MASTER_KEY') && !has('SVC_MASTER_KEY_FILE')) {
    problems.push(
      'SVC_MASTER_KEY or SVC_MASTER_KEY_FILE: required with SVC_EVENTSTORE_URL or SVC_MONGODB_URL, the same for every instance',
    );
  }
  if (has('SVC_MASTER_KEY') && has('SVC_MASTER_KEY_FILE')) {
    problems.push('SVC_MASTER_KEY and SVC_MASTER_KEY_FILE: expected one of them');
  }
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems);
  return parsed.data;
}

function realityOf(v: Variables): RealitySettings | undefined {
  const { SVC_REALITY_PRIVATE_KEY: keys, SVC_REALITY_SERVER_NAMES: names, SVC_REALITY_SHORT_IDS: shortIds } = v;
  const { SVC_REALITY_TARGET: realityTarget } = v;
  if (keys === undefined || names === undefined || shortIds === undefined || realityTarget === undefined)
    return undefined;
  return {
    keys,
    serverNames: names.map((name) => name.toLowerCase()),
    shortIds: shortIds.map((digits) => digits.toLowerCase()),
    target: realityTarget,
    maxTimeDiffMs: v.SVC_REALITY_MAX_TIME_DIFF_MS,
    allowH2c: v.SVC_REALITY_ALLOW_H2C === 'true',
  };
}

/** The config of an environment. @throws ConfigError */
export function readConfig(env: Environment): Config {
  const v = parse(env);
  return {
    http: {
      listen: v.SVC_HTTP_LISTEN_ADDR,
      tls:
        v.SVC_HTTP_TLS_CERT_FILE === undefined || v.SVC_HTTP_TLS_KEY_FILE === undefined
          ? undefined
          : { certFile: v.SVC_HTTP_TLS_CERT_FILE, keyFile: v.SVC_HTTP_TLS_KEY_FILE },
      corsOrigins: v.SVC_HTTP_CORS_ORIGINS,
      trustedProxies: v.SVC_TRUSTED_PROXIES,
      metricsToken: v.SVC_METRICS_TOKEN,
    },
    agents: {
      listen: v.SVC_REALITY_LISTEN_ADDR,
      rekeySeconds: v.SVC_CONTROL_REKEY_INTERVAL_SECS,
      failuresPerAddress: v.SVC_ADMISSION_FAILURES_PER_ADDRESS,
      pendingSessions: v.SVC_PENDING_SESSIONS,
      handshakeCpuShare: v.SVC_HANDSHAKE_CPU_SHARE,
      maxConnections: v.SVC_MAX_CONNECTIONS,
      proxyFrom: v.SVC_AGENT_PROXY_FROM,
      reality: realityOf(v),
    },
    dataDir: v.SVC_DATA_DIR,
    eventStoreUrl: v.SVC_EVENTSTORE_URL,
    eventStoreClient: v.SVC_EVENTSTORE_CLIENT,
    mongoUrl: v.SVC_MONGODB_URL,
    masterKey: { inline: v.SVC_MASTER_KEY, file: v.SVC_MASTER_KEY_FILE },
    adminPassword: v.SVC_ADMIN_PASSWORD,
    tokenTtlSeconds: v.SVC_TOKEN_TTL_SECS,
    logLevel: v.SVC_LOG_LEVEL,
  };
}

/** What `--print-config` prints: the effective variables, one `NAME=value` per line, secrets masked. @throws ConfigError */
export function printableConfig(env: Environment): string {
  parse(env);
  const given = withoutEmpty(env);
  return Object.entries(schema.shape)
    .map(([name, field]) => {
      const value = given[name] ?? defaultOf(field);
      return `${name}=${value === undefined ? '' : secrets.has(name) ? '***' : value}`;
    })
    .join('\n');
}

function defaultOf(field: z.ZodType): string | undefined {
  const { defaultValue } = field.def as { readonly defaultValue?: unknown };
  return typeof defaultValue === 'string' ? defaultValue : undefined;
}

/**
 * The TLS files of REST, which fit each other: otherwise the port would open and every handshake fail.
 * @throws ConfigError naming the variable and the file, never what is in it
 */
export function readTls(tls: Config['http']['tls']): { readonly cert: string; readonly key: string } | undefined {
  if (tls === undefined) return undefined;
  const cert = readTlsFile('SVC_HTTP_TLS_CERT_FILE', tls.certFile);
  const key = readTlsFile('SVC_HTTP_TLS_KEY_FILE', tls.keyFile);
  const certificate = usable('SVC_HTTP_TLS_CERT_FILE', tls.certFile, 'certificates in PEM, the own one first', () => {
    createSecureContext({ cert });
    return new X509Certificate(cert);
  });
  const what = 'a private key in PEM, without a passphrase';
  const privateKey = usable('SVC_HTTP_TLS_KEY_FILE', tls.keyFile, what, () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) {
    const expected = `expected the private key of the first certificate in SVC_HTTP_TLS_CERT_FILE`;
    throw new ConfigError([`SVC_HTTP_TLS_KEY_FILE: ${tls.keyFile}: ${expected}`]);
  }
  return { cert, key };
}

function readTlsFile(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError([
      `${name}: ${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    ]);
  }
}

function usable<T>(name: string, file: string, what: string, read: () => T): T {
  try {
    return read();
  } catch {
    throw new ConfigError([`${name}: ${file}: expected ${what}`]);
  }
}

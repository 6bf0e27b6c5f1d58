/**
 * The environment's variables: their names, defaults, which are secret, and which belong together. Every problem names its
 * variable and what was expected; the value of a secret never appears.
 * Implements `docs/contract/configuration.md#configuration`.
 */
import { z } from 'zod';
import { isPassword } from '../domain/accounts/rules.js';
import { limits } from '../kernel/limits.js';
import { ConfigError } from './config-error.js';
import {
  budget,
  cidrs,
  integer,
  listen,
  origins,
  path,
  realityKey,
  serverNames,
  share,
  shortIds,
  target,
} from './values.js';

/** Their values are never printed. */
const secrets: ReadonlySet<string> = new Set([
  'SVC_MASTER_KEY',
  'SVC_EVENTSTORE_URL',
  'SVC_MONGODB_URL',
  'SVC_ADMIN_PASSWORD',
  'SVC_METRICS_TOKEN',
  'SVC_REALITY_PRIVATE_KEY',
]);

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
  SVC_MONGODB_URL: z
    .string()
    .regex(/^mongodb(\+srv)?:\/\/[^/]+\/[^?]/, 'expected mongodb://…/database')
    .optional(),
  SVC_READ_STORE: z.literal('embedded', 'expected embedded').optional(),
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

export type Variables = z.output<typeof schema>;
export type Environment = { readonly [name: string]: string | undefined };

/** An empty variable counts as not set: orchestrators pass it for one that is missing. */
function withoutEmpty(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name, value]) => name.startsWith('SVC_') && value !== ''));
}

function printable(name: string, value: string | undefined): string {
  if (value === undefined) return 'not set';
  return secrets.has(name) ? '(secret)' : JSON.stringify(value);
}

/** @throws ConfigError with every problem of the environment */
export function readVariables(env: Environment): Variables {
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
  if (has('SVC_EVENTSTORE_URL') && !has('SVC_MONGODB_URL') && !has('SVC_READ_STORE')) {
    problems.push(
      'SVC_MONGODB_URL: required with SVC_EVENTSTORE_URL, because all instances of one log share one read store; for the ' +
        'only instance on that log, set SVC_READ_STORE=embedded',
    );
  }
  if (has('SVC_READ_STORE') && has('SVC_MONGODB_URL')) {
    problems.push('SVC_READ_STORE and SVC_MONGODB_URL: expected one of them');
  }
  if (has('SVC_MASTER_KEY') && has('SVC_MASTER_KEY_FILE')) {
    problems.push('SVC_MASTER_KEY and SVC_MASTER_KEY_FILE: expected one of them');
  }
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems);
  return parsed.data;
}

/** What `--print-config` prints: the effective variables, one `NAME=value` per line, secrets masked. @throws ConfigError */
export function printableConfig(env: Environment): string {
  readVariables(env);
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

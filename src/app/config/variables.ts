/**
 * The environment's variables: their names and defaults, which ones are secret, and which ones belong together. Every
 * problem names its variable and what was expected; the value of a secret never appears. `shown.ts` shows them to people.
 * Implements `docs/contract/configuration.md#configuration`.
 */
import { z } from 'zod';
import { isPassword } from '../../domain/accounts/user.js';
import { readSecretFile, systemErrorCode } from '../../kernel/files.js';
import { limits } from '../../kernel/limits.js';
import { judgeNames } from './names.js';
import {
  budget,
  cidrs,
  controlEndpoint,
  integer,
  listen,
  mailAddress,
  origins,
  path,
  publicUrl,
  realityKey,
  serverNames,
  share,
  shortIds,
  smtpUrl,
  target,
} from './values.js';

/** The environment cannot be used; the message has one line per problem. */
export class ConfigError extends Error {
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
  }
}

/** Their values are never printed, and each may be in a file instead: `NAME_FILE`. */
export const secrets: ReadonlySet<string> = new Set([
  'SVC_MASTER_KEY',
  'SVC_EVENTSTORE_URL',
  'SVC_MONGODB_URL',
  'SVC_ADMIN_PASSWORD',
  'SVC_METRICS_TOKEN',
  'SVC_REALITY_PRIVATE_KEY',
  'SVC_SMTP_URL',
]);

export const schema = z.object({
  SVC_HTTP_LISTEN_ADDR: listen.prefault('0.0.0.0:8081').describe('Where REST listens.'),
  SVC_HTTP_TLS_CERT_FILE: path
    .optional()
    .describe(
      'PEM file that REST serves over TLS: its own certificate first, then the chain. Read again on SIGHUP, and within a minute of a change.',
    ),
  SVC_HTTP_TLS_KEY_FILE: path
    .optional()
    .describe('PEM file with the key of that certificate, without a passphrase. Both files or neither.'),
  SVC_HTTP_CORS_ORIGINS: origins.prefault('').describe('Origins of browser consoles, comma-separated.'),
  SVC_TRUSTED_PROXIES: cidrs
    .prefault('')
    .describe('CIDRs of proxies whose X-Forwarded-For is believed, comma-separated.'),
  SVC_METRICS_TOKEN: z
    .string()
    .min(8, 'expected at least 8 characters')
    .regex(/^[\w.~+/=-]*$/, 'expected only letters, digits and . _ ~ + / = -, as a bearer token has')
    .optional()
    .describe('When set, /metrics requires it as bearer token.'),
  SVC_REALITY_LISTEN_ADDR: listen.prefault('0.0.0.0:8443').describe('Where agents connect, with or without REALITY.'),
  SVC_REALITY_PRIVATE_KEY: realityKey
    .optional()
    .describe(
      'X25519 private key in base64url, from `npm run reality:keygen`. It and the next three turn REALITY on together.',
    ),
  SVC_REALITY_SERVER_NAMES: serverNames
    .optional()
    .describe("Server names that an agent may ask for, comma-separated: the names in the target's certificate."),
  SVC_REALITY_SHORT_IDS: shortIds.optional().describe('Short ids of agents in hexadecimal, comma-separated.'),
  SVC_REALITY_TARGET: target.optional().describe('The TLS 1.3 server, as host:port, that strangers meet.'),
  SVC_REALITY_MAX_TIME_DIFF_MS: integer(1000, 3_600_000)
    .prefault('60000')
    .describe('How far the clock of an agent may be off.'),
  SVC_REALITY_ALLOW_H2C: z
    .enum(['true', 'false'], 'expected true or false')
    .default('false')
    .describe('`true` admits agents without REALITY too, for a migration.'),
  SVC_DATA_DIR: path
    .prefault('./data')
    .describe('Folder of the embedded stores and of key files. One process owns it.'),
  // Both may contain a password: their values are never printed.
  SVC_EVENTSTORE_URL: z
    .string()
    .regex(/^(esdb|kurrentdb|kdb|kurrent)(\+discover)?:\/\/./i, 'expected esdb://… or kurrentdb://…')
    .optional()
    .describe('`esdb://…` or `kurrentdb://…`: EventStoreDB holds the log. Without it the log is in the data folder.'),
  SVC_MONGODB_URL: z
    .string()
    .regex(/^mongodb(\+srv)?:\/\/[^/]+\/[^?]/, 'expected mongodb://…/database')
    .optional()
    .describe('`mongodb://…/database`: MongoDB holds the read models. Needed with SVC_EVENTSTORE_URL.'),
  SVC_READ_STORE: z
    .literal('embedded', 'expected embedded')
    .optional()
    .describe(
      '`embedded`: the read models are in the data folder beside SVC_EVENTSTORE_URL, for the only instance on that log.',
    ),
  SVC_MASTER_KEY: z
    .string()
    .optional()
    .describe(
      '32 bytes in base64, the same for every instance. Needed with an external store; otherwise the first start creates master.key in the data folder.',
    ),
  SVC_MASTER_KEY_FILE: path.optional().describe('File with the master key, instead of SVC_MASTER_KEY.'),
  SVC_ADMIN_PASSWORD: z
    .string()
    .refine(
      isPassword,
      `expected ${limits.accounts.passwordChars.min} to ${limits.accounts.passwordChars.max} characters`,
    )
    .optional()
    .describe(
      'Password of the first user, admin; used only while there is no user. Without it the first start writes a random one to initial-admin-password in the data folder.',
    ),
  SVC_TOKEN_TTL_SECS: integer(60, 31_536_000).prefault('43200').describe('How long an access token is valid.'),
  SVC_CONTROL_REKEY_INTERVAL_SECS: integer(10, 31_536_000)
    .prefault('21600')
    .describe('After how long agents get fresh session keys.'),
  SVC_WEBHOOK_ALLOW: cidrs
    .prefault('')
    .describe('CIDRs that webhooks may be sent to although they are not public addresses, comma-separated.'),
  SVC_PUBLIC_URL: publicUrl
    .optional()
    .describe('Where people reach the console: http or https and a host. Messages for people link to it.'),
  SVC_SERVE_AGENT: z
    .enum(['on', 'off'], 'expected on or off')
    .default('on')
    .describe(
      "`off`: the agent's program and the script that installs it are not served, and machines join with their own.",
    ),
  SVC_AGENT_PUBLIC_ENDPOINT: controlEndpoint
    .optional()
    .describe(
      'Where agents reach the service, as they are told it: `http://host:port` or `reality://…`. Without it: the host by which REST is reached.',
    ),
  SVC_SMTP_URL: smtpUrl
    .optional()
    .describe(
      'Server for mail: smtp:// or smtps://, user and password in it. Without it, no webhook has the format email.',
    ),
  SVC_SMTP_FROM: mailAddress.optional().describe('The sender of mail; needed with SVC_SMTP_URL.'),
  SVC_BACKUP_DIR: path
    .optional()
    .describe(
      'Folder for archives of the log, which the service makes by itself. Without it, this instance makes none.',
    ),
  SVC_BACKUP_EVERY_HOURS: integer(limits.backups.everyHours.min, limits.backups.everyHours.max)
    .prefault(String(limits.backups.everyHours.default))
    .describe('How often one is made.'),
  SVC_BACKUP_KEEP: integer(limits.backups.keep.min, limits.backups.keep.max)
    .prefault(String(limits.backups.keep.default))
    .describe('How many are kept in the folder.'),
  SVC_HISTORY: z
    .enum(['on', 'off'], 'expected on or off')
    .default('on')
    .describe('`off`: no history of nodes, chains and upstreams is recorded.'),
  SVC_LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal'], 'expected trace, debug, info, warn, error or fatal')
    .default('info')
    .describe('trace, debug, info, warn, error or fatal.'),
  SVC_ADMISSION_FAILURES_PER_ADDRESS: budget
    .prefault('5/50')
    .describe('How many failed attempts to open a session one address may make: per second, and at once.'),
  SVC_PENDING_SESSIONS: integer(1, 1_000_000)
    .prefault('8192')
    .describe('How many sessions may be opened and not yet attached.'),
  SVC_HANDSHAKE_CPU_SHARE: share.prefault('0.5').describe('The share of one core that handshakes may use.'),
  SVC_MAX_CONNECTIONS: integer(1, 1_000_000)
    .prefault('20000')
    .describe('How many agent connections this instance holds.'),
  SVC_AGENT_PROXY_FROM: cidrs
    .prefault('')
    .describe(
      'CIDRs of layer 4 balancers that start each agent connection with a PROXY protocol v2 header, comma-separated.',
    ),
});

/** Together, they turn REALITY on. */
const realityNames = [
  'SVC_REALITY_PRIVATE_KEY',
  'SVC_REALITY_SERVER_NAMES',
  'SVC_REALITY_SHORT_IDS',
  'SVC_REALITY_TARGET',
] as const;

export type Variables = z.output<typeof schema>;
export type Environment = { readonly [name: string]: string | undefined };

/** An empty variable counts as not set: orchestrators pass one for a missing value. */
function withoutEmpty(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name, value]) => name.startsWith('SVC_') && value !== ''));
}

/** `SVC_MASTER_KEY_FILE` is a setting of its own: the first start creates the default file. */
const readFromFiles = [...secrets].filter((name) => name !== 'SVC_MASTER_KEY');

/** The names of all settings, including those of secret files. */
function settingNames(): readonly string[] {
  return [...Object.keys(schema.shape), ...readFromFiles.map((name) => `${name}_FILE`)];
}

/**
 * The environment with secrets read from their files.
 * @param problems to which a sentence is added for each that cannot be read
 */
export function withSecretsOfFiles(env: Environment, problems: string[]): Environment {
  const given = withoutEmpty(env);
  const read = readFromFiles.flatMap((name): [string, string][] => {
    const file = given[`${name}_FILE`];
    if (file === undefined) return [];
    if (given[name] !== undefined) {
      problems.push(`${name} and ${name}_FILE: expected one of them`);
      return [];
    }
    try {
      return [[name, readSecretFile(file)]];
    } catch (error) {
      const reason = systemErrorCode(error) ?? 'failed';
      problems.push(`${name}_FILE: cannot read ${JSON.stringify(file)} (${reason}): expected a file with the value`);
      return [];
    }
  });
  return { ...given, ...Object.fromEntries(read) };
}

/** Unknown names that start with `SVC_` and belong to nobody; a start warns about each. Misspelled ones are refused. */
export function unknownVariables(env: Environment): readonly string[] {
  return judgeNames(Object.keys(withoutEmpty(env)), settingNames()).unknown;
}

function printable(name: string, value: string | undefined): string {
  if (value === undefined) return 'not set';
  return secrets.has(name) ? '(secret)' : JSON.stringify(value);
}

/** @throws ConfigError with every problem of the environment */
export function readVariables(env: Environment): Variables {
  const own = withoutEmpty(env);
  const problems: string[] = [...judgeNames(Object.keys(own), settingNames()).misspelled];
  const given = withSecretsOfFiles(env, problems);
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const name = String(issue.path[0]);
      problems.push(`${name}: got ${printable(name, given[name])}: ${issue.message}`);
    }
  }
  const has = (name: string): boolean => given[name] !== undefined;
  if (has('SVC_SMTP_URL') && !has('SVC_SMTP_FROM')) {
    problems.push('SVC_SMTP_FROM: required with SVC_SMTP_URL, expected an address such as gateway@example.com');
  }
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

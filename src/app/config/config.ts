/**
 * The service's config, read once from the environment and typed. `variables.ts` defines the variables. Implements
 * `docs/contract/configuration.md#configuration`.
 */
import type { BackupSettings } from '../../backups/backups.js';
import type { HostPort } from '../../kernel/host-port.js';
import type { AgentTransportOptions } from '../../transport/agent/agent-transport.js';
import type { RealitySettings } from '../../transport/listener/reality/settings.js';
import { readVariables, type Environment, type Variables } from './variables.js';

export interface Config {
  readonly http: {
    readonly listen: HostPort;
    readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
    readonly corsOrigins: readonly string[];
    readonly trustedProxies: readonly string[];
    readonly metricsToken: string | undefined;
  };
  readonly agents: Pick<
    AgentTransportOptions,
    | 'listen'
    | 'rekeySeconds'
    | 'failuresPerAddress'
    | 'pendingSessions'
    | 'handshakeCpuShare'
    | 'maxConnections'
    | 'proxyFrom'
  > & {
    /** Undefined: agents speak h2c. */
    readonly reality: RealitySettings | undefined;
    /** What agents are told to connect to; undefined: the host by which REST is reached. */
    readonly publicEndpoint: string | undefined;
  };
  readonly dataDir: string;
  /** `esdb://…` or `kurrentdb://…`; undefined: the log is in the data folder. */
  readonly eventStoreUrl: string | undefined;
  /** `mongodb://…/database`; undefined: the read models are in the data folder. */
  readonly mongoUrl: string | undefined;
  /** The log is in EventStoreDB and the read models are in the data folder, for the only instance on that log. */
  readonly readStoreHere: boolean;
  readonly masterKey: { readonly inline: string | undefined; readonly file: string | undefined };
  readonly adminPassword: string | undefined;
  readonly tokenTtlSeconds: number;
  /** CIDRs that webhooks may be sent to although they are not public. */
  readonly webhookAllow: readonly string[];
  /** The origin at which people reach the console; null if not set. */
  readonly publicUrl: string | null;
  /** Whether the agent's program and the script that installs it are served. */
  readonly serveAgent: boolean;
  /** The server for mail; undefined: none is sent. */
  readonly mail: { readonly url: string; readonly from: string } | undefined;
  /** Undefined: this instance makes no backups. */
  readonly backups: BackupSettings | undefined;
  /** Whether history of nodes, chains and upstreams is recorded. */
  readonly history: boolean;
  readonly logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';
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
  const v = readVariables(env);
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
      publicEndpoint: v.SVC_AGENT_PUBLIC_ENDPOINT,
    },
    dataDir: v.SVC_DATA_DIR,
    eventStoreUrl: v.SVC_EVENTSTORE_URL,
    mongoUrl: v.SVC_MONGODB_URL,
    readStoreHere: v.SVC_EVENTSTORE_URL !== undefined && v.SVC_READ_STORE === 'embedded',
    masterKey: { inline: v.SVC_MASTER_KEY, file: v.SVC_MASTER_KEY_FILE },
    adminPassword: v.SVC_ADMIN_PASSWORD,
    tokenTtlSeconds: v.SVC_TOKEN_TTL_SECS,
    webhookAllow: v.SVC_WEBHOOK_ALLOW,
    publicUrl: v.SVC_PUBLIC_URL ?? null,
    serveAgent: v.SVC_SERVE_AGENT === 'on',
    mail:
      v.SVC_SMTP_URL === undefined || v.SVC_SMTP_FROM === undefined
        ? undefined
        : { url: v.SVC_SMTP_URL, from: v.SVC_SMTP_FROM },
    backups:
      v.SVC_BACKUP_DIR === undefined
        ? undefined
        : { dir: v.SVC_BACKUP_DIR, everyMs: v.SVC_BACKUP_EVERY_HOURS * 3_600_000, keep: v.SVC_BACKUP_KEEP },
    history: v.SVC_HISTORY === 'on',
    logLevel: v.SVC_LOG_LEVEL,
  };
}

/**
 * The agent's environment variables as a typed value, read once. The node's configuration arrives over the control
 * session and is never stored. Implements section 4.2 of `docs/contract/service-specification.txt`,
 * `docs/contract/agent-protocol.md#the-reference-agent` and `docs/contract/joining.md#the-machines-side`.
 */
import { z } from 'zod';
import { agentKeysFrom, type AgentKeys } from '../channel/noise/control-psk.js';
import { readSecretFile, systemErrorCode } from '../kernel/files.js';
import { parseHostPort, type HostPort } from '../kernel/host-port.js';
import { limits } from '../kernel/limits.js';
import { joinKeysFrom } from '../channel/noise/join-token.js';
import { readEndpoint, type ControlEndpoint } from '../channel/reality/endpoint.js';
import type { Identity } from './state-directory.js';

export interface AgentConfig {
  readonly nodeId: string;
  readonly endpoint: ControlEndpoint;
  /** Derived from the control PSK, which the agent does not keep. */
  readonly keys: AgentKeys;
  /** The service may grant less. */
  readonly rekeyIntervalSeconds: number;
  /** Reject a snapshot with anything that cannot run, instead of running the rest. */
  readonly rejectUnsupported: boolean;
  /** Where a configuration that waits for its confirmation is kept; undefined: nowhere. */
  readonly stateDir?: string | undefined;
  readonly logLevel: LogLevel;
  /** Where it serves `/healthz` and `/metrics`; undefined: nowhere. */
  readonly metrics: HostPort | undefined;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** The environment is unusable. The message names each wrong variable and what was expected, but never a secret. */
export class AgentConfigError extends Error {
  constructor(problems: readonly string[]) {
    super(problems.join('; '));
    this.name = 'AgentConfigError';
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

const schema = z.object({
  SVC_AGENT_ID: z
    .string({ error: 'required: the id of this node, unless it has joined, or SVC_JOIN_TOKEN lets it join' })
    .regex(/^[\x21-\x7e]{1,128}$/, 'expected the id of this node, 1 to 128 printable characters'),
  SVC_CONTROL_ENDPOINT: z.string({ error: 'required: http://host:port' }).transform((text, context) => {
    const endpoint = readEndpoint(text);
    if (typeof endpoint !== 'string') return endpoint;
    context.addIssue({ code: 'custom', message: endpoint });
    return z.NEVER;
  }),
  SVC_CONTROL_PSK: z
    .string({ error: 'required, or SVC_CONTROL_PSK_FILE: the control PSK of this node' })
    .transform((text, context) => {
      const keys = agentKeysFrom(text);
      if (keys.ok) return keys.value;
      context.addIssue({ code: 'custom', message: keys.error });
      return z.NEVER;
    }),
  SVC_CONTROL_REKEY_INTERVAL_SECS: z
    .string()
    .regex(/^\d{1,9}$/, 'expected a whole number of seconds')
    .transform(Number)
    .refine((seconds) => seconds >= 10, 'expected at least 10 seconds')
    .default(limits.agentControl.rekeyDefaultSeconds),
  SVC_AGENT_REJECT_UNSUPPORTED: z
    .enum(['true', 'false'], { error: 'expected true or false' })
    .default('true')
    .transform((text) => text === 'true'),
  SVC_AGENT_METRICS_ADDR: z
    .string()
    .transform((text, context) => {
      const address = parseHostPort(text.startsWith(':') ? `0.0.0.0${text}` : text);
      if (address !== undefined) return address;
      context.addIssue({ code: 'custom', message: 'expected host:port, such as 127.0.0.1:9090' });
      return z.NEVER;
    })
    .optional(),
  SVC_LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error'], { error: 'expected debug, info, warn or error' })
    .default('info'),
});

/** Variables whose value must not appear in an error. */
const secrets: ReadonlySet<string> = new Set(['SVC_CONTROL_PSK', 'SVC_JOIN_TOKEN']);

/** The directory of `identity.json`. */
export const stateDirOf = ({ SVC_AGENT_STATE_DIR: folder }: Environment): string =>
  folder === undefined || folder === '' ? '/var/lib/gateway-agent' : folder;

/** Whether the environment names the node that the agent connects as, so the identity file does not count. */
export const namesNode = (environment: Environment): boolean =>
  ['SVC_AGENT_ID', 'SVC_CONTROL_PSK', 'SVC_CONTROL_PSK_FILE'].some((name) => (environment[name] ?? '') !== '');

/**
 * Reads the agent's settings from its environment.
 * @param identity used if the environment names no node
 * @throws AgentConfigError listing every wrong variable
 */
export function readAgentConfig(environment: Environment, identity?: Identity): AgentConfig {
  const { SVC_CONTROL_ENDPOINT: endpoint } = environment;
  const joined = identity !== undefined && {
    SVC_AGENT_ID: identity.node_id,
    SVC_CONTROL_PSK: identity.control_psk,
    SVC_CONTROL_ENDPOINT: endpoint === undefined || endpoint === '' ? identity.endpoint : endpoint,
  };
  const settings = parsed(schema, withPsk({ ...environment, ...joined }));
  return {
    nodeId: settings.SVC_AGENT_ID,
    endpoint: settings.SVC_CONTROL_ENDPOINT,
    keys: settings.SVC_CONTROL_PSK,
    rekeyIntervalSeconds: settings.SVC_CONTROL_REKEY_INTERVAL_SECS,
    rejectUnsupported: settings.SVC_AGENT_REJECT_UNSUPPORTED,
    stateDir: stateDirOf(environment),
    logLevel: settings.SVC_LOG_LEVEL,
    metrics: settings.SVC_AGENT_METRICS_ADDR,
  };
}

const joinSchema = schema.omit({ SVC_AGENT_ID: true, SVC_CONTROL_PSK: true }).extend({
  SVC_JOIN_TOKEN: z.string().superRefine((text, context) => {
    const keys = joinKeysFrom(text);
    if (!keys.ok) context.addIssue(keys.error);
  }),
});

/**
 * The settings that a joining machine needs from its environment, all checked.
 * @throws AgentConfigError listing every wrong variable
 */
export function readJoinSettings(environment: Environment): {
  readonly token: string;
  readonly endpoint: ControlEndpoint;
  readonly logLevel: LogLevel;
} {
  const settings = parsed(joinSchema, environment);
  const { SVC_JOIN_TOKEN: token, SVC_CONTROL_ENDPOINT: endpoint, SVC_LOG_LEVEL: logLevel } = settings;
  return { token, endpoint, logLevel };
}

/**
 * An empty variable counts as not set, as in the service: orchestrators pass one for a missing value.
 * @throws AgentConfigError listing every wrong variable
 */
function parsed<T>(by: z.ZodType<T>, environment: Environment): T {
  const given = Object.entries(environment).filter(([, value]) => value !== '');
  const result = by.safeParse(Object.fromEntries(given));
  if (result.success) return result.data;
  throw new AgentConfigError(
    result.error.issues.map((issue) => {
      const name = String(issue.path[0] ?? 'environment');
      const value = environment[name];
      const got = value === undefined || secrets.has(name) ? '' : ` (got ${JSON.stringify(value.slice(0, 200))})`;
      return `${name}: ${issue.message}${got}`;
    }),
  );
}

/** The PSK may be in a file, named by `SVC_CONTROL_PSK_FILE`. */
function withPsk(environment: Environment): Environment {
  const { SVC_CONTROL_PSK: psk, SVC_CONTROL_PSK_FILE: file = '' } = environment;
  if (file === '') return environment;
  if (psk !== undefined && psk !== '') {
    throw new AgentConfigError(['SVC_CONTROL_PSK_FILE: expected this or SVC_CONTROL_PSK, got both']);
  }
  try {
    return { ...environment, SVC_CONTROL_PSK: readSecretFile(file) };
  } catch (error) {
    const why = systemErrorCode(error) ?? 'it cannot be read';
    throw new AgentConfigError([`SVC_CONTROL_PSK_FILE: expected a file that this process can read: ${file} (${why})`]);
  }
}

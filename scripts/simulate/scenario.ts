/** The command line of the simulator: the behaviour of agents and operators, and for how long. */
import { parseHostPort, type HostPort } from '../../src/kernel/host-port.js';
import { hopKinds, type HopKind } from '../stack/hop-chains.js';
import { parseArguments, UsageError } from '../maintenance/command-line.js';

export interface Scenario {
  readonly agents: number;
  readonly processes: number;
  readonly durationSeconds: number;
  /** A running service; undefined: the simulator starts its own. */
  readonly service: { readonly url: string; readonly endpoint: HostPort; readonly user: string } | undefined;
  /** Undefined: the service's interval. */
  readonly heartbeatSeconds: number | undefined;
  /** Undefined: what the agent's configuration listens on. */
  readonly table: { readonly listeners: number; readonly routesPerListener: number } | undefined;
  /** Shares of the agents, 0 to 1. */
  readonly changing: number;
  readonly rejecting: number;
  readonly slow: number;
  /** Connections cut per second. */
  readonly churn: number;
  /** Seconds at which all connections are cut at once. */
  readonly storms: readonly number[];
  /** Changes per second that touch one node, and all of them. */
  readonly editsOfOne: number;
  readonly editsOfAll: number;
  /** Kinds of hops that carry real bytes meanwhile, in chains of real agents. */
  readonly hops: readonly HopKind[];
  /** How long all may take to connect; the scenario continues afterwards in any case. */
  readonly connectSeconds: number;
  /** How long all agents may take to converge at the end. */
  readonly settleSeconds: number;
  readonly reportFile: string | undefined;
  readonly json: boolean;
  readonly keep: boolean;
}

export const usage = `Usage: npm run simulate -- [options]

Simulated agents over real sockets, against a service of their own in a temporary folder or, with --url, a running one.

  --agents N            how many, 1..20000 (1000)
  --processes N         spread over this many, 1..16 (2)
  --duration SECONDS    how long after all have connected, 1..86400 (30)
  --heartbeat SECONDS   between heartbeats, 0.1..3600 (as the service tells)
  --table LxR           listeners and routes of each in a heartbeat (those of its configuration)
  --changing SHARE      of the agents, whose --table differs with each heartbeat, 0..1 (0)
  --churn N             connections cut per second, 0..10000 (0)
  --storm SECOND        all connections cut at once then; may be given more than once
  --edit-one N          changes per second that touch one node, 0..100 (1)
  --edit-all N          changes per second that touch all nodes, 0..20 (0.1)
  --rejects SHARE       of the agents, which reject all but their first configuration, 0..1 (0)
  --slow SHARE          of the agents, which read slowly, 0..1 (0)
  --hops KINDS          real bytes meanwhile through chains of three real agents: tcp, tls, reality, udp, enc; several with commas
  --connect-within SECONDS  for all to connect, 1..3600 (60, and 1 for each 50 agents)
  --settle SECONDS      for all to converge in the end, 1..3600 (60)
  --report FILE         a report with plots, .html or .svg
  --json                the result as JSON on standard output
  --url URL             REST of a running service; the password comes from SVC_SIM_PASSWORD
  --endpoint URL        http://host:port of its agents' listener (the host of --url, port 8443)
  --user NAME           an admin or operator of it (admin)
  --keep                leave in it what the simulator has created

Exit code: 0 if all agents converged in the end and every chain of --hops carried what it was given, 1 if not, 2 for wrong
options.`;

/** Any fleet gets `seconds`, plus its connect time on a slow machine. */
const connectWithin = { seconds: 60, agentsPerSecond: 50 };

const valued = [
  '--agents',
  '--processes',
  '--duration',
  '--heartbeat',
  '--table',
  '--changing',
  '--churn',
  '--storm',
  '--edit-one',
  '--edit-all',
  '--rejects',
  '--slow',
  '--hops',
  '--settle',
  '--connect-within',
  '--report',
  '--url',
  '--endpoint',
  '--user',
];

/** @throws UsageError that names the option and what was expected */
export function readScenario(argv: readonly string[]): Scenario {
  const { flags, values } = parseArguments(argv, ['--json', '--keep'], 0, valued);
  const last = (option: string): string | undefined => values(option).at(-1);
  const numberIn = (option: string, text: string, min: number, max: number, whole = false): number => {
    const value = Number(text);
    if (text.trim() === '' || !(value >= min && value <= max) || (whole && !Number.isInteger(value))) {
      throw new UsageError(`${option}: expected a ${whole ? 'whole ' : ''}number from ${min} to ${max}, got "${text}"`);
    }
    return value;
  };
  const count = (option: string, standard: number, max: number): number =>
    numberIn(option, last(option) ?? String(standard), 1, max, true);
  const number = (option: string, standard: number, max: number, min = 0): number =>
    numberIn(option, last(option) ?? String(standard), min, max);
  const share = (option: string): number => number(option, 0, 1);

  const durationSeconds = number('--duration', 30, 86_400, 1);
  const storms = values('--storm').map((text) => numberIn('--storm', text, 0, durationSeconds));
  const heartbeat = last('--heartbeat');
  const report = last('--report');
  if (report !== undefined && !/\.(html|svg)$/.test(report)) {
    throw new UsageError(`--report: expected a file that ends with .html or .svg, got "${report}"`);
  }
  const [rejecting, slow] = [share('--rejects'), share('--slow')];
  if (rejecting + slow > 1) throw new UsageError('--slow: expected at most 1 together with --rejects');
  const agents = count('--agents', 1_000, 20_000);
  const [given, changing] = [last('--table'), share('--changing')];
  if (changing > 0 && given === undefined) throw new UsageError('--changing: expected --table with it');
  return {
    agents,
    processes: count('--processes', 2, 16),
    durationSeconds,
    service: serviceOf(last('--url'), last('--endpoint'), last('--user')),
    heartbeatSeconds: heartbeat === undefined ? undefined : numberIn('--heartbeat', heartbeat, 0.1, 3_600),
    table: given === undefined ? undefined : tableOf(given),
    changing,
    rejecting,
    slow,
    churn: number('--churn', 0, 10_000),
    storms: storms.toSorted((a, b) => a - b),
    editsOfOne: number('--edit-one', 1, 100),
    editsOfAll: number('--edit-all', 0.1, 20),
    hops: kindsOf(last('--hops')),
    connectSeconds: number(
      '--connect-within',
      connectWithin.seconds + agents / connectWithin.agentsPerSecond,
      3_600,
      1,
    ),
    settleSeconds: number('--settle', 60, 3_600, 1),
    reportFile: report,
    json: flags.has('--json'),
    keep: flags.has('--keep'),
  };
}

function kindsOf(text: string | undefined): Scenario['hops'] {
  if (text === undefined) return [];
  return [...new Set(text.split(','))].map((word) => {
    const kind = hopKinds.find((one) => one === word);
    if (kind === undefined) throw new UsageError(`--hops: expected some of ${hopKinds.join(', ')}, got "${text}"`);
    return kind;
  });
}

function tableOf(text: string): Scenario['table'] {
  const [, listeners, routes] = /^(\d{1,4})x(\d{1,4})$/.exec(text) ?? [];
  const table = { listeners: Number(listeners), routesPerListener: Number(routes) };
  if (listeners === undefined || table.listeners > 4_096 || table.listeners * table.routesPerListener > 16_384) {
    throw new UsageError(
      `--table: expected LxR with at most 4096 listeners and 16384 routes in all, such as 20x5, got "${text}"`,
    );
  }
  return table;
}

function serviceOf(
  url: string | undefined,
  endpoint: string | undefined,
  user: string | undefined,
): Scenario['service'] {
  if (url === undefined) {
    if (endpoint !== undefined) throw new UsageError('--endpoint: expected only together with --url');
    if (user !== undefined) throw new UsageError('--user: expected only together with --url');
    return undefined;
  }
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new UsageError(`--url: expected http://host:port, got "${url}"`);
  }
  const { hostname, origin } = new URL(url);
  const host = /^https?:\/\/([^/]+)\/?$/.exec(endpoint ?? `http://${hostname}:8443`)?.[1];
  const parsed = host === undefined || endpoint?.startsWith('https') === true ? undefined : parseHostPort(host);
  if (parsed === undefined) throw new UsageError(`--endpoint: expected http://host:port, got "${endpoint ?? ''}"`);
  return { url: origin, endpoint: parsed, user: user ?? 'admin' };
}

/**
 * Tries everything that the rules dial, and the targets of REALITY hops: each way once, whichever rules share it, a
 * bounded number at once, and for a bounded time. A probe that was not tried is not reported as ok.
 */
import type { DiagnosticsItem } from '../../gen/svc/control/v1/diagnostics.js';
import type { RuleOrigin } from '../../gen/svc/control/v1/transport.js';
import { createTurns, withFirstOf } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { unreachable } from '../../kernel/errors.js';
import { formatHostPort, type HostPort } from '../../kernel/host-port.js';
import { limits } from '../../kernel/limits.js';
import { probeTarget } from '../../transport/listener/reality/probe.js';
import { createTarget } from '../../transport/listener/reality/target.js';
import { hopsOf, type DialledRoute, type DialSecurity, type Target } from '../plan/plan.js';
import { reach, type Way } from '../relays/reach.js';

const atOnce = 64;
const eachMs = 5_000;
const allMs = limits.agent.diagnostics.answerMs - 10_000;

interface Probe {
  readonly what: string;
  /** The first resource whose rules need it. */
  readonly origin: RuleOrigin;
  /** How many other rules do. */
  others: number;
  /** @returns undefined if it was reached, or why not */
  run(signal: AbortSignal): Promise<string | undefined>;
  /** What reaching it means. */
  readonly reached: string;
}

/** @param signal ends all attempts */
export async function probeAll(target: Target, clock: Clock, signal: AbortSignal): Promise<readonly DiagnosticsItem[]> {
  const waiting = [...(await probesOf(target, clock)).values()].entries();
  const found: DiagnosticsItem[] = [];
  await withFirstOf([signal, AbortSignal.timeout(allMs)], (over) => {
    const work = async (): Promise<void> => {
      for (const [index, probe] of waiting) found[index] = await tried(probe, clock, over);
    };
    return Promise.all(Array.from({ length: atOnce }, work));
  });
  return found;
}

async function tried(probe: Probe, clock: Clock, over: AbortSignal): Promise<DiagnosticsItem> {
  const { origin, others } = probe;
  const more = others === 0 ? '' : ` (${others + 1} rules)`;
  const name = `${probe.what}, of ${origin.resourceType} "${origin.resourceName}"${more}`;
  if (over.aborted) return { name, value: 'not tried: no time was left', ok: false };
  const late = AbortSignal.timeout(eachMs);
  const began = clock.monotonic();
  const why = await withFirstOf([over, late], probe.run);
  const ms = Math.round(clock.monotonic() - began);
  if (why === undefined) return { name, value: `${probe.reached} in ${ms} ms`, ok: true };
  return { name, value: `not reached after ${ms} ms: ${late.aborted ? 'no answer in time' : why}`, ok: false };
}

/** Keyed by what distinguishes them. */
async function probesOf(target: Target, clock: Clock): Promise<Map<string, Probe>> {
  const probes = new Map<string, Probe>();
  const pause = createTurns(10);
  const add = (key: string, probe: Omit<Probe, 'others'>): void => {
    const known = probes.get(key);
    if (known === undefined) probes.set(key, { ...probe, others: 0 });
    else known.others += 1;
  };
  for (const dialled of target.routes) {
    for (const { key, ...probe } of probesOfRoute(dialled, target.clusters, clock)) add(key, probe);
    await pause();
  }
  for (const plan of target.listeners.values()) {
    const [origin] = plan.origins;
    for (const { target: at, serverNames } of origin === undefined ? [] : hopsOf(plan)) {
      for (const name of serverNames) {
        const what = `REALITY target ${formatHostPort(at)} as ${name}`;
        const run = (signal: AbortSignal): Promise<string | undefined> => reachTarget(at, name, clock, signal);
        if (origin !== undefined) add(what, { what, origin, run, reached: 'reached' });
      }
    }
  }
  return probes;
}

function probesOfRoute(
  { transport, route: { next, origin, security } }: DialledRoute,
  clusters: Target['clusters'],
  clock: Clock,
): readonly (Omit<Probe, 'others'> & { readonly key: string })[] {
  const cluster = next.kind === 'cluster' ? clusters.get(next.name) : undefined;
  const endpoints = next.kind === 'endpoint' ? [next.endpoint] : (cluster?.endpoints ?? []);
  const { how, identity } = kindOf(security, transport);
  return endpoints.map((endpoint) => {
    const what = `${next.kind === 'cluster' ? 'upstream' : 'next hop'} ${formatHostPort(endpoint)} over ${how}`;
    const way: Way = { endpoint, transport, security };
    const isOff = cluster?.enabled === false;
    return {
      key: `${what} ${isOff} ${identity}`,
      what,
      origin,
      run: async (signal) => (isOff ? 'it is disabled' : reach(way, clock, signal)),
      // Nobody answers a datagram that says nothing, and a made-up one could do harm.
      reached: how === 'raw udp' ? 'there is a way to it, found' : 'reached',
    };
  });
}

/** What tells two ways to the same endpoint apart. */
function kindOf(security: DialSecurity, transport: 'tcp' | 'udp'): { readonly how: string; readonly identity: string } {
  switch (security.kind) {
    case 'raw':
      return { how: `raw ${transport}`, identity: '' };
    case 'tls':
      return { how: 'TLS', identity: [security.serverName, ...security.pins].join(' ') };
    case 'reality': {
      const { publicKey, serverName, shortId } = security.access;
      return { how: 'REALITY', identity: [Buffer.from(publicKey).toString('hex'), serverName, shortId].join(' ') };
    }
    case 'noise':
      return { how: 'ENC', identity: security.publicKey.toString('hex') };
    default:
      return unreachable(security);
  }
}

/** Connects like a client that asks for this name: the target must answer in a way that the hop can imitate. */
async function reachTarget(
  endpoint: HostPort,
  serverName: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<string | undefined> {
  const why = await reach({ endpoint, transport: 'tcp', security: { kind: 'raw' } }, clock, signal);
  if (why !== undefined) return why;
  const target = createTarget(endpoint);
  const close = (): void => target.close();
  signal.addEventListener('abort', close, { once: true });
  const visit = { serverName, protocols: 'h2', hash: undefined, watchMs: 0, signal } as const;
  const probed = await probeTarget(target, visit, () => undefined);
  signal.removeEventListener('abort', close);
  target.close();
  return typeof probed === 'object' ? undefined : 'it answers, but in a way that cannot be imitated';
}

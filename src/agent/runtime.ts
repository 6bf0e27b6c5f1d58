/**
 * The data plane of the reference agent: applies a snapshot as one target and reports what runs. All state is in
 * memory, nothing is written to disk, and nothing here depends on the connection to the service. Implements
 * `docs/contract/agent-protocol.md#configuration`, `docs/contract/agent-protocol.md#the-reference-agent` and section 3
 * of `docs/contract/service-specification.txt`.
 */
import {
  ConfigApplyStatus,
  type ConfigApplyError,
  type ConfigApplyReport,
  type RuntimeConfigSnapshot,
} from '../gen/svc/control/v1/config.js';
import type { RuntimeListener } from '../gen/svc/control/v1/heartbeat.js';
import type { Clock } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import { withPauses } from '../kernel/pieces.js';
import { createSampledLog } from '../kernel/sampled-log.js';
import type { AppliedConfig, Gateway, GatewayChanges, GatewayReport } from './gateway.js';
import { probeAll } from './diagnosis/probes.js';
import { createCertificates } from './plan/certificates.js';
import type { ListenerPlan, Target } from './plan/plan.js';
import { planTarget } from './plan/target.js';
import { relayLimits } from './relays/limits.js';
import { createHealthChecks } from './relays/health-checks.js';
import { createLinks, type WantedLink } from './relays/links.js';
import { createListenerSet } from './relays/listener-set.js';
import { createMeter, createSamples, type Meter, type Samples } from './relays/meters.js';
import { createPins } from './relays/pins.js';
import { createRealityTargets } from './relays/reality-targets.js';
import { createUpstreams, type Upstreams } from './relays/upstreams.js';

interface RuntimeOptions {
  /** Reject a snapshot with anything that cannot run, instead of reporting its listener as `unsupported`. */
  readonly rejectUnsupported: boolean;
  readonly logger: Logger;
  readonly clock: Clock;
}

export function createRuntime(options: RuntimeOptions): Gateway {
  const { logger, clock } = options;
  const latency = createSamples(relayLimits.latencySamples);
  let changes: GatewayChanges | undefined;
  const upstreams = createUpstreams(latency, () => changes?.onUpstreams());
  const checks = createHealthChecks(upstreams, clock);
  const links = createLinks();
  const pins = createPins();
  const targets = createRealityTargets({ clock, logger, changed: () => changes?.onRoutes() });
  const totals = createMeter();
  const refusals = createSampledLog({ write: (fields, message) => logger.warn(fields, message), clock });
  const listeners = createListenerSet({ upstreams, links, pins, targets, clock, logger, refusals, totals });
  const certificates = createCertificates();
  let applied: AppliedConfig | undefined;
  let plans: ReadonlyMap<string, ListenerPlan> = new Map();
  let running: Target | undefined;
  let closed = false;

  const switchTo = async (target: Target): Promise<readonly ConfigApplyError[]> => {
    const prepared = await listeners.prepare(target.listeners);
    if (!prepared.ok) return prepared.error;
    // From here on, nothing fails or waits, so connections see either the old target or the new one.
    upstreams.set(target.clusters);
    checks.set(target.checks);
    pins.set(target.pins);
    targets.set(target.listeners.values());
    prepared.value.commit();
    plans = target.listeners;
    running = target;
    links.keep(linksOf(target));
    for (const omitted of target.unsupported) logger.warn({ omitted: errorLine(omitted) }, 'left out');
    return [];
  };

  const runtimeListeners = (): readonly RuntimeListener[] => {
    const table: RuntimeListener[] = [];
    let routes = 0;
    for (const plan of plans.values()) {
      routes += plan.routes.length;
      if (table.length >= limits.agent.runtimeListeners || routes > limits.agent.runtimeRoutes) break;
      table.push(runtimeListener(plan, targets.routes(plan), listeners.get(plan.key)));
    }
    return table;
  };
  const report = createReporter({ clock, totals, latency, upstreams, runtimeListeners });

  return {
    get applied() {
      return applied;
    },
    async apply(snapshot: RuntimeConfigSnapshot, goesBack = false): Promise<ConfigApplyReport | undefined> {
      const { generation, checksum } = snapshot;
      if (closed) return undefined;
      if (!goesBack && applied !== undefined && generation < applied.generation) {
        logger.info(
          { generation: String(generation), applied: String(applied.generation) },
          'older generation ignored',
        );
        return undefined;
      }
      const started = clock.monotonic();
      const contextOf = certificates(snapshot.gateway?.tls?.certificates ?? []);
      const { rejectUnsupported } = options;
      const planned = await withPauses(planTarget(snapshot, { rejectUnsupported, contextOf }));
      const errors = planned.ok ? await switchTo(planned.value) : planned.error;
      const duration_ms = Math.round(clock.monotonic() - started);
      if (errors.length === 0) {
        applied = { generation, checksum: Buffer.from(checksum) };
        logger.info({ generation: String(generation), listeners: plans.size, duration_ms }, 'configuration applied');
      } else {
        logger.warn(
          { generation: String(generation), errors: errors.slice(0, 10).map(errorLine), duration_ms },
          'configuration rejected',
        );
      }
      return applyReport(snapshot, errors, duration_ms);
    },
    runtimeListeners,
    linkMetrics: () => links.metrics(),
    report,
    watch(watching) {
      changes = watching;
    },
    probe: async (signal) => (running === undefined ? [] : probeAll(running, clock, signal)),
    async close() {
      closed = true;
      plans = new Map();
      pins.close();
      await Promise.all([checks.close(), targets.close()]);
      await listeners.close();
      refusals.close();
    },
  };
}

/** Each endpoint of each rule. */
function linksOf({ routes, clusters }: Target): readonly WantedLink[] {
  return routes.flatMap(({ transport, route: { origin, next } }) => {
    const endpoints = next.kind === 'endpoint' ? [next.endpoint] : (clusters.get(next.name)?.endpoints ?? []);
    return endpoints.map((endpoint) => ({ origin, endpoint, transport }));
  });
}

function applyReport(
  { generation, checksum }: RuntimeConfigSnapshot,
  errors: readonly ConfigApplyError[],
  durationMs: number,
): ConfigApplyReport {
  return {
    generation,
    checksum: Buffer.from(checksum),
    status: errors.length === 0 ? ConfigApplyStatus.APPLIED : ConfigApplyStatus.REJECTED,
    errors: errors.slice(0, limits.agent.applyErrors),
    durationMs: BigInt(durationMs),
  };
}

function runtimeListener(
  plan: ListenerPlan,
  routes: RuntimeListener['routes'],
  listener: ReturnType<ReturnType<typeof createListenerSet>['get']>,
): RuntimeListener {
  const place = { transport: plan.transport, listenAddr: plan.addr, listenPort: plan.port, routes };
  if (plan.service === undefined) return { ...place, state: 'unsupported' };
  if (listener === undefined) return { ...place, state: 'failed' };
  const { bytesIn, bytesOut, activeSessions, totalSessions, errorSessions } = listener.meter.values;
  return {
    ...place,
    state: listener.state,
    bytesIn: BigInt(bytesIn),
    bytesOut: BigInt(bytesOut),
    activeSessions: BigInt(activeSessions),
    totalSessions: BigInt(totalSessions),
    errorSessions: BigInt(errorSessions),
  };
}

/** An apply error as one text, for the log. */
function errorLine({ resourceType, resourceId, path, message }: ConfigApplyError): string {
  return `${resourceType} ${resourceId} ${path}: ${message}`;
}

interface ReporterSources {
  readonly clock: Clock;
  readonly totals: Meter;
  /** Connect times to next hops. */
  readonly latency: Samples;
  readonly upstreams: Upstreams;
  readonly runtimeListeners: () => readonly RuntimeListener[];
}

function createReporter(sources: ReporterSources): () => GatewayReport {
  const { clock, totals, latency } = sources;
  let last = { at: clock.monotonic(), bytesIn: 0, bytesOut: 0 };
  return () => {
    const { bytesIn, bytesOut, activeSessions, totalSessions, errorSessions } = totals.values;
    const now = { at: clock.monotonic(), bytesIn, bytesOut };
    const elapsed = Math.max(1, now.at - last.at) / 1000;
    const report: GatewayReport = {
      connections: {
        active: BigInt(activeSessions),
        accepted: BigInt(totalSessions),
        closed: BigInt(totalSessions - activeSessions),
        failed: BigInt(errorSessions),
        handshakeFailures: BigInt(totals.values.handshakeFailures),
      },
      bandwidth: {
        bytesIn: BigInt(bytesIn),
        bytesOut: BigInt(bytesOut),
        bitsInPerSecond: ((bytesIn - last.bytesIn) * 8) / elapsed,
        bitsOutPerSecond: ((bytesOut - last.bytesOut) * 8) / elapsed,
        listeners: sources.runtimeListeners().flatMap((listener) =>
          listener.bytesIn === undefined || listener.bytesOut === undefined
            ? []
            : [
                {
                  transport: listener.transport,
                  listenAddr: listener.listenAddr,
                  listenPort: listener.listenPort,
                  bytesIn: listener.bytesIn,
                  bytesOut: listener.bytesOut,
                },
              ],
        ),
      },
      gateway: {
        requests: BigInt(totalSessions),
        errors: BigInt(errorSessions),
        workerRestarts: 0n,
        latencyP50Ms: latency.percentile(0.5),
        latencyP99Ms: latency.percentile(0.99),
        upstreams: sources.upstreams.metrics(),
      },
    };
    latency.clear();
    last = now;
    return report;
  };
}

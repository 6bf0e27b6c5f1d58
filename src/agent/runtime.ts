/**
 * The data plane of the reference agent: applies a snapshot as one target and reports what runs. All state is in memory,
 * nothing is written to disk, and nothing here depends on the connection to the service.
 * Implements `docs/contract/agent-protocol.md#configuration`, `docs/contract/agent-protocol.md#the-reference-agent` and
 * section 3 of `docs/contract/service-specification.txt`.
 */
import { ConfigApplyStatus } from '../gen/svc/control/v1/config.js';
import type { ConfigApplyError, ConfigApplyReport, RuntimeConfigSnapshot } from '../gen/svc/control/v1/config.js';
import type { RuntimeListener } from '../gen/svc/control/v1/heartbeat.js';
import type { Clock } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import { createSampledLog } from '../kernel/sampled-log.js';
import { createCertificates } from './certificates.js';
import { createMeter } from './counters.js';
import type { AppliedConfig, Gateway } from './gateway.js';
import { createLinks } from './links.js';
import { createListenerSet } from './listener-set.js';
import { createPins } from './pins.js';
import { createReporter } from './metrics-report.js';
import type { ListenerPlan, Target } from './plan.js';
import { createSamples } from './samples.js';
import { planTarget } from './target.js';
import { createUpstreams } from './upstreams.js';
import { tuning } from './tuning.js';

interface RuntimeOptions {
  /** Reject a snapshot with anything that cannot be run, instead of reporting its listener as `unsupported`. */
  readonly rejectUnsupported: boolean;
  readonly logger: Logger;
  readonly clock: Clock;
}

export function createRuntime(options: RuntimeOptions): Gateway {
  const { logger, clock } = options;
  const latency = createSamples(tuning.latencySamples);
  const upstreams = createUpstreams(latency);
  const links = createLinks();
  const pins = createPins();
  const totals = createMeter();
  const refusals = createSampledLog({ write: (fields, message) => logger.warn(fields, message), clock });
  const listeners = createListenerSet({ upstreams, links, pins, clock, logger, refusals, totals });
  const certificates = createCertificates();
  let applied: AppliedConfig | undefined;
  let plans: ReadonlyMap<string, ListenerPlan> = new Map();
  let closed = false;

  const switchTo = async (target: Target): Promise<readonly ConfigApplyError[]> => {
    const prepared = await listeners.prepare(target.listeners);
    if (!prepared.ok) return prepared.error;
    // From here on nothing fails or waits, so connections see either the old target or the new one.
    upstreams.set(target.clusters);
    pins.set(target.pins);
    prepared.value.commit();
    plans = target.listeners;
    links.keep(new Set(Array.from(plans.values()).flatMap(({ origins }) => origins.map((of) => of.resourceId))));
    for (const omitted of target.unsupported) logger.warn({ omitted: errorLine(omitted) }, 'left out');
    return [];
  };

  const runtimeListeners = (): readonly RuntimeListener[] => {
    const table: RuntimeListener[] = [];
    let routes = 0;
    for (const plan of plans.values()) {
      routes += plan.routes.length;
      if (table.length >= limits.agent.runtimeListeners || routes > limits.agent.runtimeRoutes) break;
      table.push(runtimeListener(plan, listeners.get(plan.key)));
    }
    return table;
  };
  const report = createReporter({ clock, totals, latency, upstreams, runtimeListeners });

  return {
    get applied() {
      return applied;
    },
    async apply(snapshot: RuntimeConfigSnapshot): Promise<ConfigApplyReport | undefined> {
      const { generation, checksum } = snapshot;
      if (closed) return undefined;
      if (applied !== undefined && generation < applied.generation) {
        logger.info(
          { generation: String(generation), applied: String(applied.generation) },
          'older generation ignored',
        );
        return undefined;
      }
      const started = clock.monotonic();
      const planned = planTarget(snapshot, {
        rejectUnsupported: options.rejectUnsupported,
        contextOf: certificates(snapshot.gateway?.tls?.certificates ?? []),
      });
      const errors = planned.ok ? await switchTo(planned.value) : planned.error;
      const duration_ms = Math.round(clock.monotonic() - started);
      const accepted = errors.length === 0;
      if (accepted) {
        applied = { generation, checksum: Buffer.from(checksum) };
        logger.info({ generation: String(generation), listeners: plans.size, duration_ms }, 'configuration applied');
      } else {
        logger.warn(
          { generation: String(generation), errors: errors.slice(0, 10).map(errorLine), duration_ms },
          'configuration rejected',
        );
      }
      return {
        generation,
        checksum: Buffer.from(checksum),
        status: accepted ? ConfigApplyStatus.APPLIED : ConfigApplyStatus.REJECTED,
        errors: errors.slice(0, limits.agent.applyErrors),
        durationMs: BigInt(duration_ms),
      };
    },
    runtimeListeners,
    linkMetrics: () => links.metrics(),
    report,
    diagnostics: () => ({
      generation: applied === undefined ? null : String(applied.generation),
      listeners: runtimeListeners().map(
        ({ transport, listenAddr, listenPort, state }) => `${transport} ${listenAddr} ${listenPort} ${state}`,
      ),
      totals: { ...totals.values },
    }),
    async close() {
      closed = true;
      plans = new Map();
      pins.close();
      await listeners.close();
      refusals.close();
    },
  };
}

function runtimeListener(
  plan: ListenerPlan,
  listener: ReturnType<ReturnType<typeof createListenerSet>['get']>,
): RuntimeListener {
  const place = { transport: plan.transport, listenAddr: plan.addr, listenPort: plan.port, routes: plan.routes };
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

/** Makes MetricsReports from the counters: totals since the start, rates and latencies since the last report. */
import type { RuntimeListener } from '../gen/svc/control/v1/heartbeat.js';
import type { Clock } from '../kernel/clock.js';
import type { Meter } from './counters.js';
import type { GatewayReport } from './gateway.js';
import type { Samples } from './samples.js';
import type { Upstreams } from './upstreams.js';

interface ReporterSources {
  readonly clock: Clock;
  readonly totals: Meter;
  /** Connect times to next hops. */
  readonly latency: Samples;
  readonly upstreams: Upstreams;
  readonly runtimeListeners: () => readonly RuntimeListener[];
}

export function createReporter(sources: ReporterSources): () => GatewayReport {
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

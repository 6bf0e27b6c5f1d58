/** Heartbeats and metrics in the form that is stored: safe for JSON, whatever numbers an agent sends. */
import { describe, expect, test } from 'vitest';
import { HeartbeatRequest } from '../../src/gen/svc/control/v1/heartbeat.js';
import { MetricsReport } from '../../src/gen/svc/control/v1/metrics.js';
import { OuterTransport } from '../../src/gen/svc/control/v1/transport.js';
import { metricsFacts } from '../../src/reports/from-wire.js';
import { heartbeatFacts, linksIn, listenersIn } from '../../src/reports/reported.js';
import { linkOfChain, processNamed, tablesOnWire } from '../support/reported-tables.js';

const huge = 2n ** 64n - 1n;
const most = Number.MAX_SAFE_INTEGER;

describe('a heartbeat', () => {
  test('is shown with its listeners and links', () => {
    const heartbeat = HeartbeatRequest.fromPartial({
      cpuUsage: 0.25,
      memoryUsage: 0.5,
      uptimeSeconds: 77n,
      linkMetrics: [
        {
          resourceType: 'l4_chain',
          resourceId: 'c1',
          peerNodeId: 'n2',
          peerEndpoint: '192.0.2.1:443',
          outer: OuterTransport.FAKE_TCP,
          rttMs: 1.5,
          jitterMs: 0,
          lossRatio: 0.125,
          bytesIn: 1n,
          bytesOut: huge,
          activeSessions: 3n,
        },
        { resourceType: 'l4_chain', outer: 0, rttMs: Number.NaN, lossRatio: Number.POSITIVE_INFINITY },
        { resourceType: 'l4_chain', outer: 0, rttMs: -1, jitterMs: -0.5, lossRatio: 1.5 },
        { resourceType: 'l4_chain', outer: 0, lossRatio: -1 },
        { outer: 999 as OuterTransport },
      ],
      runtimeListeners: [
        {
          transport: 'tcp',
          listenAddr: '::',
          listenPort: 443,
          state: 'active',
          routes: [
            {
              service: 's',
              payload: 'p',
              outer: 'o',
              security: 'tls',
              matchKind: 'sni',
              matchValue: 'a.example',
              nextHop: 'n2',
            },
          ],
          bytesIn: 1n,
          bytesOut: 2n,
          activeSessions: 3n,
          totalSessions: huge,
          errorSessions: 0n,
        },
        { transport: 'udp' },
      ],
    });
    const { link_metrics, runtime_listeners, ...figures } = heartbeatFacts(heartbeat, tablesOnWire(heartbeat), {
      process_id: 'ab',
      runs_generation: 7,
    });
    const shown = {
      ...figures,
      link_metrics: linksIn(link_metrics.bytes, new Map()),
      runtime_listeners: listenersIn(runtime_listeners, new Map()),
    };
    expect(shown).toStrictEqual({
      process_id: 'ab',
      runs_generation: 7,
      cpu_usage: 0.25,
      memory_usage: 0.5,
      uptime_seconds: 77,
      link_metrics: [
        {
          resource_type: 'l4_chain',
          resource_id: 'c1',
          peer_node_id: 'n2',
          peer_endpoint: '192.0.2.1:443',
          outer: 'fake_tcp',
          rtt_ms: 1.5,
          jitter_ms: 0,
          loss_ratio: 0.125,
          bytes_in: 1,
          bytes_out: most,
          active_sessions: 3,
        },
        linkOfChain('', { outer: '' }),
        linkOfChain('', { outer: '', loss_ratio: 1 }),
        linkOfChain('', { outer: '' }),
        linkOfChain('', { resource_type: '', outer: '' }),
      ],
      runtime_listeners: [
        {
          transport: 'tcp',
          listen_addr: '::',
          listen_port: 443,
          state: 'active',
          routes: [
            {
              service: 's',
              payload: 'p',
              outer: 'o',
              security: 'tls',
              match_kind: 'sni',
              match_value: 'a.example',
              next_hop: 'n2',
              state: null,
            },
          ],
          bytes_in: 1,
          bytes_out: 2,
          active_sessions: 3,
          total_sessions: most,
          error_sessions: 0,
        },
        { transport: 'udp', listen_addr: '', listen_port: 0, state: '', routes: [] },
      ],
    });
  });

  test.each([
    [-0.5, 0],
    [0, 0],
    [1, 1],
    [1.5, 1],
    [Number.NaN, 0],
    [Number.POSITIVE_INFINITY, 0],
    [Number.NEGATIVE_INFINITY, 0],
  ])('has shares between 0 and 1: %d is stored as %d', (sent, stored) => {
    const heartbeat = HeartbeatRequest.fromPartial({ cpuUsage: sent, memoryUsage: sent });
    const { cpu_usage, memory_usage } = heartbeatFacts(heartbeat, tablesOnWire(heartbeat), processNamed(''));
    expect([cpu_usage, memory_usage]).toEqual([stored, stored]);
  });
});

describe('a metrics report', () => {
  test('is stored with the parts that it has', () => {
    expect(metricsFacts(MetricsReport.fromPartial({}))).toStrictEqual({
      connections: null,
      bandwidth: null,
      gateway: null,
    });
    const whole = MetricsReport.fromPartial({
      connections: { active: 1n, accepted: 2n, closed: 3n, failed: 4n, handshakeFailures: huge },
      bandwidth: {
        bytesIn: 1n,
        bytesOut: 2n,
        bitsInPerSecond: 3.5,
        bitsOutPerSecond: Number.NaN,
        listeners: [{ transport: 'tcp', listenAddr: '::', listenPort: 443, bytesIn: 5n, bytesOut: 6n }],
      },
      gateway: {
        requests: 1n,
        errors: 2n,
        workerRestarts: 3n,
        latencyP50Ms: -4.5,
        latencyP99Ms: Number.POSITIVE_INFINITY,
        upstreams: [{ cluster: 'c', requests: 5n, errors: 6n, healthy: true, latencyP99Ms: 7.5 }],
      },
    });
    expect(metricsFacts(whole)).toStrictEqual({
      connections: { active: 1, accepted: 2, closed: 3, failed: 4, handshake_failures: most },
      bandwidth: {
        bytes_in: 1,
        bytes_out: 2,
        bits_in_per_second: 3.5,
        bits_out_per_second: 0,
        listeners: [{ transport: 'tcp', listen_addr: '::', listen_port: 443, bytes_in: 5, bytes_out: 6 }],
      },
      gateway: {
        requests: 1,
        errors: 2,
        worker_restarts: 3,
        latency_p50_ms: 0,
        latency_p99_ms: 0,
        upstreams: [{ cluster: 'c', requests: 5, errors: 6, healthy: true, latency_p99_ms: 7.5 }],
      },
    });
  });
});

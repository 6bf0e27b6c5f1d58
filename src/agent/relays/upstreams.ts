/**
 * Chooses where a new session goes: the endpoints of a rule's next hop in the order to try them, round robin over a
 * cluster. Keeps the metrics of each cluster. Opens no sockets.
 */
import { isDeepStrictEqual } from 'node:util';
import type { UpstreamMetrics } from '../../gen/svc/control/v1/metrics.js';
import type { HostPort } from '../../kernel/host-port.js';
import type { Cluster, RelayRoute } from '../plan/plan.js';
import { relayLimits } from './limits.js';
import { createSamples, type Samples } from './meters.js';

/** How many endpoints of a cluster one connection tries. */
const connectAttempts = 3;

export interface Picked {
  /** At least one, at most `connectAttempts`. */
  readonly endpoints: readonly HostPort[];
  /** Reports the result: how long the connect took in milliseconds, or undefined if all endpoints failed. */
  settled(connectMs: number | undefined): void;
}

export interface Upstreams {
  /** Replaces the clusters for new sessions. A cluster that stays keeps its turn and its metrics. */
  set(clusters: ReadonlyMap<string, Cluster>): void;
  /** Undefined for a cluster that is disabled or unknown. */
  pick(route: RelayRoute): Picked | undefined;
  /** Records the result of a cluster's check. */
  checked(cluster: string, healthy: boolean): void;
  /** Metrics of each cluster with any results; latencies since the last call. */
  metrics(): readonly UpstreamMetrics[];
}

interface Entry {
  cluster: Cluster;
  turn: number;
  requests: number;
  errors: number;
  /** The result of the last check or connection; undefined before the first one. */
  healthy: boolean | undefined;
  readonly latency: Samples;
}

/**
 * @param latency also gets the connect times of all clusters and endpoints
 * @param changed called when the health of a cluster becomes known or changes
 */
export function createUpstreams(latency: Samples, changed: () => void): Upstreams {
  let entries = new Map<string, Entry>();

  const found = (entry: Entry, healthy: boolean): void => {
    if (entry.healthy === healthy) return;
    entry.healthy = healthy;
    changed();
  };

  const pickCluster = (entry: Entry): Picked => {
    const { endpoints } = entry.cluster;
    const start = entry.turn % endpoints.length;
    entry.turn = start + 1;
    entry.requests += 1;
    const inTurn = [...endpoints.slice(start), ...endpoints.slice(0, start)];
    return {
      endpoints: inTurn.slice(0, connectAttempts),
      settled(connectMs) {
        // They may have been replaced while one of them was dialled.
        if (isDeepStrictEqual(entry.cluster.endpoints, endpoints)) found(entry, connectMs !== undefined);
        if (connectMs === undefined) entry.errors += 1;
        else {
          entry.latency.add(connectMs);
          latency.add(connectMs);
        }
      },
    };
  };

  return {
    set(clusters) {
      entries = new Map(
        Array.from(clusters, ([name, cluster]) => {
          const existing = entries.get(name);
          if (existing === undefined) return [name, createEntry(cluster)];
          // Results of other endpoints say nothing about these.
          if (!isDeepStrictEqual(existing.cluster.endpoints, cluster.endpoints)) existing.healthy = undefined;
          existing.cluster = cluster;
          return [name, existing];
        }),
      );
    },
    pick({ next }) {
      if (next.kind === 'cluster') {
        const entry = entries.get(next.name);
        return entry?.cluster.enabled === true ? pickCluster(entry) : undefined;
      }
      return {
        endpoints: [next.endpoint],
        settled: (connectMs) => {
          if (connectMs !== undefined) latency.add(connectMs);
        },
      };
    },
    checked(cluster, healthy) {
      const entry = entries.get(cluster);
      if (entry !== undefined) found(entry, healthy);
    },
    metrics: () =>
      Array.from(entries).flatMap(([cluster, entry]) => {
        const latencyP99Ms = entry.latency.percentile(0.99);
        entry.latency.clear();
        const { requests, errors, healthy } = entry;
        if (healthy === undefined) return [];
        return [{ cluster, requests: BigInt(requests), errors: BigInt(errors), healthy, latencyP99Ms }];
      }),
  };
}

function createEntry(cluster: Cluster): Entry {
  const latency = createSamples(relayLimits.latencySamples);
  return { cluster, turn: 0, requests: 0, errors: 0, healthy: undefined, latency };
}

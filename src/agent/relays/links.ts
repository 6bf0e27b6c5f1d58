/**
 * Measurements of each link: a rule's resource and an endpoint that it dials. The TCP connect gives the round-trip
 * time. Above a limit, traffic of new links is relayed but not measured.
 */
import type { LinkMetric } from '../../gen/svc/control/v1/heartbeat.js';
import { OuterTransport, type RuleOrigin } from '../../gen/svc/control/v1/transport.js';
import { formatHostPort, type HostPort } from '../../kernel/host-port.js';
import type { Transport } from '../plan/plan.js';
import { relayLimits } from './limits.js';
import { createMeter, type Meter } from './meters.js';

export interface Link {
  readonly meter: Meter;
  /** Records a successful connect and how long it took. */
  connected(rttMs: number): void;
  /** Records a failed connect. */
  failed(): void;
}

export interface Links {
  of(origin: RuleOrigin, endpoint: HostPort, transport: Transport): Link;
  /** Forgets links of all other resources once no session uses them. */
  keep(resourceIds: ReadonlySet<string>): void;
  metrics(): readonly LinkMetric[];
}

interface Entry extends Link {
  readonly resourceId: string;
  metric(): LinkMetric;
}

/** Weights of a new measurement, as in TCP's estimators (RFC 6298). */
const rttWeight = 1 / 8;
const jitterWeight = 1 / 4;
/** Number of connects over which the loss ratio is computed. */
const lossWindow = 64;

export function createLinks(): Links {
  const entries = new Map<string, Entry>();
  return {
    of(origin, endpoint, transport) {
      const peer = formatHostPort(endpoint);
      const key = `${transport} ${origin.resourceId} ${peer}`;
      const existing = entries.get(key);
      if (existing !== undefined) return existing;
      const entry = createEntry(origin, peer, transport);
      if (entries.size < relayLimits.links) entries.set(key, entry);
      return entry;
    },
    keep(resourceIds) {
      for (const [key, entry] of entries) {
        if (!resourceIds.has(entry.resourceId) && entry.meter.values.activeSessions === 0) entries.delete(key);
      }
    },
    metrics: () => Array.from(entries.values(), (entry) => entry.metric()),
  };
}

function createEntry(origin: RuleOrigin, peerEndpoint: string, transport: Transport): Entry {
  const meter = createMeter();
  let rtt: number | undefined;
  let jitter = 0;
  let outcomes: boolean[] = [];
  const record = (lost: boolean): void => {
    outcomes = [...outcomes.slice(1 - lossWindow), lost];
  };
  return {
    meter,
    resourceId: origin.resourceId,
    connected(rttMs) {
      record(false);
      jitter = rtt === undefined ? 0 : jitter + jitterWeight * (Math.abs(rttMs - rtt) - jitter);
      rtt = rtt === undefined ? rttMs : rtt + rttWeight * (rttMs - rtt);
    },
    failed() {
      record(true);
    },
    metric: () => ({
      resourceType: origin.resourceType,
      resourceId: origin.resourceId,
      // Rules name endpoints, not nodes.
      peerNodeId: '',
      peerEndpoint,
      outer: transport === 'tcp' ? OuterTransport.TCP : OuterTransport.UDP,
      rttMs: rtt,
      jitterMs: rtt === undefined ? undefined : jitter,
      lossRatio: outcomes.length === 0 ? undefined : outcomes.filter(Boolean).length / outcomes.length,
      bytesIn: BigInt(meter.values.bytesIn),
      bytesOut: BigInt(meter.values.bytesOut),
      activeSessions: BigInt(meter.values.activeSessions),
    }),
  };
}

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

/** An endpoint that a rule dials. */
export interface WantedLink {
  readonly origin: RuleOrigin;
  readonly endpoint: HostPort;
  readonly transport: Transport;
}

export interface Links {
  of(origin: RuleOrigin, endpoint: HostPort, transport: Transport): Link;
  /** Forgets all other links that no session uses. */
  keep(wanted: readonly WantedLink[]): void;
  metrics(): readonly LinkMetric[];
}

interface Entry extends Link {
  metric(): LinkMetric;
}

/** Weights of a new measurement, as in TCP's estimators (RFC 6298). */
const rttWeight = 1 / 8;
const jitterWeight = 1 / 4;
/** Number of connects over which the loss ratio is computed. */
const lossWindow = 64;

const keyOf = ({ origin, endpoint, transport }: WantedLink): string =>
  `${transport} ${origin.resourceId} ${formatHostPort(endpoint)}`;

export function createLinks(): Links {
  const entries = new Map<string, Entry>();
  /** The keys of those to keep; undefined: all. */
  let kept: ReadonlySet<string> | undefined;

  const forgetUnused = (): void => {
    for (const [key, { meter }] of entries) {
      if (kept?.has(key) === false && meter.values.activeSessions === 0) entries.delete(key);
    }
  };

  return {
    of(origin, endpoint, transport) {
      const key = keyOf({ origin, endpoint, transport });
      const existing = entries.get(key);
      if (existing !== undefined) return existing;
      const entry = createEntry(origin, formatHostPort(endpoint), transport);
      if (entries.size < relayLimits.links) entries.set(key, entry);
      return entry;
    },
    keep(wanted) {
      kept = new Set(wanted.map(keyOf));
      forgetUnused();
    },
    metrics() {
      forgetUnused();
      return Array.from(entries.values(), (entry) => entry.metric());
    },
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

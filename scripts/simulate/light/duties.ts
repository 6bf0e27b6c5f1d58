/**
 * What a light agent does in its sessions: requests and confirms configurations, and sends heartbeats. Keeps what it has
 * applied from one session to the next. Implements the agent's side of `docs/contract/agent-protocol.md#configuration` and
 * `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { agentVersion } from '../../../src/agent/agent.js';
import type { ConnectionEnd } from '../../../src/agent/control/reconnect.js';
import { firstHeartbeatWithinMs } from '../../../src/agent/control/session.js';
import { Command } from '../../../src/gen/svc/control/v1/command.js';
import {
  ConfigApplyStatus,
  RuntimeConfigSnapshot,
  type ConfigApplyError,
  type ConfigApplyReport,
} from '../../../src/gen/svc/control/v1/config.js';
import type { HeartbeatResponse } from '../../../src/gen/svc/control/v1/heartbeat.js';
import { features } from '../../../src/domain/snapshot/features.js';
import { limits } from '../../../src/kernel/limits.js';
import { heartbeatPayload, metricsOf, runningOf, type Heard, type Running, type Tables } from './payloads.js';
import type { LightSession } from './session.js';

/** How an agent behaves; the owner may change it at any time. */
export interface Behaviour {
  /** Rejects every snapshot but its first. */
  rejects: boolean;
  /** Reads nothing after the first answer until told to. Its heartbeats continue. */
  slow: boolean;
}

/** Events for the agents' owner. */
export interface AgentEvents {
  /** The service has answered on the first session of a connection. */
  onConnected(): void;
  onDisconnected(end: ConnectionEnd, wasConnected: boolean): void;
  onApplied(generation: number): void;
  onRejected(generation: number): void;
  onHeartbeat(): void;
  onAnswered(): void;
  onRekeyed(): void;
}

export interface Beating {
  /** Instead of the service's interval; 0: no heartbeats. */
  everyMs: number | undefined;
  /** Undefined: each agent reports what its snapshot listens on. */
  tables: Tables | undefined;
}

interface DutiesOptions {
  readonly nodeId: string;
  readonly beating: Beating;
  readonly firstTable: number;
  readonly random: () => number;
  readonly events: Pick<AgentEvents, 'onApplied' | 'onRejected' | 'onHeartbeat' | 'onAnswered'>;
  behaviour(): Behaviour;
  /** Called when too many heartbeats in a row were not answered. */
  lose(detail: string): void;
}

interface Duties {
  /** The generation last applied; undefined before the first. */
  readonly applied: number | undefined;
  begin(session: LightSession): void;
  /** There is no session for now. */
  pause(): void;
  hear(heard: Exclude<Heard, { readonly kind: 'close' | 'unknown' }>): void;
  /** Restarts the heartbeats, at a random time within the interval. */
  beatAnew(): void;
}

export function createDuties({ nodeId, beating, random, events, behaviour, lose, firstTable }: DutiesOptions): Duties {
  let session: LightSession | undefined;
  let applied: { readonly generation: bigint; readonly checksum: Buffer } | undefined;
  let lastReport: ConfigApplyReport | undefined;
  let sequence = 0;
  let unanswered = 0;
  let toldMs = 10_000;
  let nextTable = firstTable;
  /** The snapshot last applied, until what it runs is first reported. */
  let unread: Uint8Array | undefined;
  let running: Running = { table: new Uint8Array(0), clusters: [] };
  /** Whether this session has reported its upstreams. */
  let measured = false;
  let heartbeat: NodeJS.Timeout | undefined;

  const requestConfig = (fresh: boolean): void => {
    const from = fresh ? undefined : applied;
    session?.say({
      $case: 'configRequest',
      value: { nodeId, configVersion: from?.generation ?? 0n, checksum: from?.checksum ?? Buffer.alloc(0) },
    });
  };

  const tell = (seconds: number): void => {
    toldMs = (seconds || 10) * 1000;
  };
  const intervalMs = (): number => beating.everyMs ?? toldMs;
  const beatIn = (ms: number): void => {
    clearTimeout(heartbeat);
    if (intervalMs() > 0) heartbeat = setTimeout(beat, ms);
  };
  const beat = (): void => {
    if (session === undefined) return;
    // A slow reader has not read the answers it received.
    if (unanswered >= limits.agentControl.missedHeartbeats && !behaviour().slow) {
      return lose(`${unanswered} heartbeats in a row were not answered`);
    }
    beatIn(intervalMs());
    unanswered += 1;
    const { tables } = beating;
    if (tables === undefined && unread !== undefined) [running, unread] = [runningOf(unread), undefined];
    const table = tables?.[(nextTable += 1) % tables.length] ?? running.table;
    session.sayBytes(heartbeatPayload((sequence += 1), Date.now(), table));
    events.onHeartbeat();
    if (tables !== undefined || measured) return;
    measured = true;
    session.say({ $case: 'metrics', value: metricsOf((sequence += 1), running.clusters) });
  };

  const onHeartbeatResponse = (response: HeartbeatResponse): void => {
    unanswered = 0;
    events.onAnswered();
    const before = intervalMs();
    tell(response.heartbeatIntervalSecs);
    if (intervalMs() !== before) beatIn(intervalMs());
    if (response.commands.includes(Command.RELOAD_CONFIG)) requestConfig(true);
  };

  const onSnapshot = ({ generation, checksum, bytes }: Extract<Heard, { readonly kind: 'snapshot' }>): void => {
    if (applied !== undefined && generation < Number(applied.generation)) return;
    const rejects = behaviour().rejects && applied !== undefined && generation !== Number(applied.generation);
    const report = {
      generation: BigInt(generation),
      checksum,
      status: rejects ? ConfigApplyStatus.REJECTED : ConfigApplyStatus.APPLIED,
      errors: rejects ? [objectionTo(RuntimeConfigSnapshot.decode(bytes))] : [],
      durationMs: 1n,
    };
    lastReport = report;
    if (!rejects) {
      applied = { generation: report.generation, checksum };
      unread = new Uint8Array(bytes);
      measured = false;
    }
    session?.say({ $case: 'applyReport', value: report });
    if (rejects) events.onRejected(generation);
    else events.onApplied(generation);
  };

  return {
    get applied() {
      return applied === undefined ? undefined : Number(applied.generation);
    },
    begin(next) {
      session = next;
      unanswered = 0;
      measured = false;
      session.say({ $case: 'hello', value: { ...hello, nodeId } });
      if (lastReport !== undefined) session.say({ $case: 'applyReport', value: lastReport });
      requestConfig(false);
      tell(session.grant.heartbeatIntervalSecs);
      beatIn(random() * Math.min(intervalMs(), firstHeartbeatWithinMs));
    },
    pause() {
      session = undefined;
      clearTimeout(heartbeat);
    },
    hear(heard) {
      switch (heard.kind) {
        case 'heartbeatResponse':
          return onHeartbeatResponse(heard.value);
        case 'snapshot':
          return onSnapshot(heard);
        case 'unchanged':
          return;
        default:
          heard satisfies never;
      }
    },
    beatAnew: () => beatIn(random() * intervalMs()),
  };
}

const hello = {
  publicIpv4: '',
  publicIpv6: '',
  agentVersion,
  multiplex: false,
  multiplexPort: 0,
  detectedAddresses: [],
  features: [...features],
  processId: Buffer.alloc(0),
};

/** A rejecting agent's objection to a snapshot: its first rule. */
function objectionTo({ gateway }: RuntimeConfigSnapshot): ConfigApplyError {
  const origin = gateway?.tcpProxyRules[0]?.origin;
  return {
    resourceType: origin?.resourceType ?? '',
    resourceId: origin?.resourceId ?? '',
    path: `hops[${origin?.hopIndex ?? 0}].listen_port`,
    message: 'rejected by the simulator',
  };
}

/** Many light agents in one process, and their joint counts. Used by the simulator and the benchmarks. */
import { AgentConfigError } from '../../../src/agent/config.js';
import type { ConnectionEnd } from '../../../src/agent/control/reconnect.js';
import { SessionCloseReason } from '../../../src/gen/svc/control/v1/session.js';
import { GrpcStatus } from '../../../src/kernel/errors.js';
import type { HostPort } from '../../../src/kernel/host-port.js';
import { limits } from '../../../src/kernel/limits.js';
import { agentKeysFrom } from '../../../src/channel/noise/control-psk.js';
import { createLightAgent, type LightAgent } from './agent.js';
import type { Beating } from './duties.js';
import { encodeTables, type TableSize } from './payloads.js';
import { connectingAtOnce, createTurns } from './turns.js';

export interface LightCredentials {
  readonly nodeId: string;
  /** `svcpsk1_…` */
  readonly controlPsk: string;
}

export interface Heartbeats {
  readonly table?: TableSize;
  /** Milliseconds, instead of the service's interval; 0: no heartbeats. */
  readonly everyMs?: number;
}

export interface LightFleetOptions {
  readonly endpoint: HostPort;
  readonly agents: readonly LightCredentials[];
  /** How many may connect at the same time; by default `connectingAtOnce` of `turns.ts`. */
  readonly connectingAtOnce?: number;
  /** By default, the listeners of its snapshot at the service's intervals. */
  readonly heartbeats?: Heartbeats;
  readonly rekeySeconds?: number;
  /** How many agents, from the first one on, reject every snapshot but their first. */
  readonly rejecting?: number;
  /** How many agents, from the last one backwards, read slowly. */
  readonly slow?: number;
  /** False: nobody connects before `start`. */
  readonly startNow?: boolean;
  readonly random?: () => number;
  readonly onApplied?: (nodeId: string, generation: number) => void;
  readonly onRejected?: (nodeId: string, generation: number) => void;
}

/** Counted since the start. */
export interface FleetCounts {
  connects: number;
  /** Connections that ended after the service had answered on them. */
  losses: number;
  /** Attempts that ended before that without a status: refused or cut sockets, and timeouts. */
  failedDials: number;
  /** Refusals of OpenSession by gRPC status. */
  readonly refusals: Record<string, number>;
  /** Encrypted closes from the service, by reason. */
  readonly closes: Record<string, number>;
  applies: number;
  rejects: number;
  heartbeats: number;
  answers: number;
  rekeys: number;
}

export interface LightFleet {
  readonly size: number;
  readonly counts: FleetCounts;
  connected(): number;
  /** The generation that a node's agent applied last. */
  applied(nodeId: string): number | undefined;
  /** How many have applied a configuration. */
  configured(): number;
  /** Cuts this many connected agents, chosen at random; they come back after their backoff. @returns how many */
  cut(count: number): number;
  start(): void;
  /** Changes all agents' heartbeats, at random times within their interval. */
  beat(heartbeats: Heartbeats): void;
  /** Slow agents read the content of their window, once. */
  readOnce(): void;
  /** All agents read and accept from now on. */
  relent(): void;
  close(): Promise<void>;
}

/** How many agents one process may hold. */
const lightFleetMax = 20_000;

/**
 * Starts the agents; they connect when it is their turn.
 * @throws AgentConfigError for a malformed PSK, RangeError for more agents than `lightFleetMax`
 */
export function startLightFleet(options: LightFleetOptions): LightFleet {
  const { agents: credentials, random = Math.random } = options;
  if (credentials.length > lightFleetMax)
    throw new RangeError(`agents: expected at most ${lightFleetMax}, got ${credentials.length}`);
  const beating = beatingOf(options.heartbeats);
  const counts: FleetCounts = {
    connects: 0,
    losses: 0,
    failedDials: 0,
    refusals: {},
    closes: {},
    applies: 0,
    rejects: 0,
    heartbeats: 0,
    answers: 0,
    rekeys: 0,
  };
  const turn = createTurns(options.connectingAtOnce ?? connectingAtOnce);

  const agents = new Map<string, LightAgent>();
  const list = credentials.map(({ nodeId, controlPsk }, index) => {
    const keys = agentKeysFrom(controlPsk);
    if (!keys.ok) throw new AgentConfigError([`${nodeId}: ${keys.error}`]);
    const agent = createLightAgent({
      identity: { nodeId, keys: keys.value },
      endpoint: options.endpoint,
      behaviour: {
        rejects: index < (options.rejecting ?? 0),
        slow: index >= credentials.length - (options.slow ?? 0),
      },
      beating,
      firstTable: index,
      rekeySeconds: options.rekeySeconds ?? limits.agentControl.rekeyDefaultSeconds,
      random,
      turn,
      events: {
        onConnected: () => void (counts.connects += 1),
        onDisconnected: (end, wasConnected) => countEnd(counts, end, wasConnected),
        onApplied(generation) {
          counts.applies += 1;
          options.onApplied?.(nodeId, generation);
        },
        onRejected(generation) {
          counts.rejects += 1;
          options.onRejected?.(nodeId, generation);
        },
        onHeartbeat: () => void (counts.heartbeats += 1),
        onAnswered: () => void (counts.answers += 1),
        onRekeyed: () => void (counts.rekeys += 1),
      },
    });
    agents.set(nodeId, agent);
    return agent;
  });
  const start = (): void => {
    for (const agent of list) agent.start();
  };
  if (options.startNow !== false) start();

  return {
    size: list.length,
    counts,
    connected: () => list.filter((agent) => agent.connected).length,
    applied: (nodeId) => agents.get(nodeId)?.applied,
    configured: () => list.filter((agent) => agent.applied !== undefined).length,
    cut(count) {
      const connected = list.filter((agent) => agent.connected);
      const chosen = Math.min(count, connected.length);
      for (let left = 0; left < chosen; left += 1) {
        const [agent] = connected.splice(Math.floor(random() * connected.length), 1);
        agent?.cut();
      }
      return chosen;
    },
    start,
    beat(heartbeats) {
      Object.assign(beating, beatingOf(heartbeats));
      for (const agent of list) agent.beatAnew();
    },
    readOnce() {
      for (const agent of list) agent.readOnce();
    },
    relent() {
      for (const agent of list) agent.behave({ rejects: false, slow: false });
    },
    async close() {
      await Promise.all(list.map((agent) => agent.close()));
    },
  };
}

function beatingOf({ table, everyMs }: Heartbeats = {}): Beating {
  return { everyMs, tables: table && encodeTables(table) };
}

function countEnd(counts: FleetCounts, end: ConnectionEnd, wasConnected: boolean): void {
  if (wasConnected) counts.losses += 1;
  switch (end.kind) {
    case 'lost':
      if (!wasConnected) counts.failedDials += 1;
      return;
    case 'refused':
      return add(counts.refusals, nameOf(GrpcStatus, end.status));
    case 'closed':
      return add(counts.closes, nameOf(SessionCloseReason, end.close.reason));
    default:
      end satisfies never;
  }
}

function add(into: Record<string, number>, name: string): void {
  into[name] = (into[name] ?? 0) + 1;
}

function nameOf(names: Readonly<Record<string, number>>, value: number): string {
  return Object.entries(names).find(([, each]) => each === value)?.[0] ?? String(value);
}

/**
 * The real agent transport on a free port, with small fakes of delivery, telemetry and the fact recorder that record
 * their calls. Its clock is the machine's plus what a test adds.
 */
import type { FactRecorder } from '../../src/commands/port.js';
import type { AgentEvent } from '../../src/domain/agents/facts.js';
import type { NodeState } from '../../src/domain/node/node.js';
import { defaultSettings, type SettingsState } from '../../src/domain/settings/settings.js';
import type {
  AcceptedPsk,
  ApplyReport,
  ConfigAnswer,
  Delivery,
  ServingState,
  PushSlot,
  SnapshotPush,
} from '../../src/delivery/port.js';
import { ServicePayload, type AgentHello } from '../../src/gen/svc/control/v1/session.js';
import { ConfigUpdate, RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import type { Clock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { issueControlPsk, sealVerifier } from '../../src/security/psk.js';
import type { SealedValue } from '../../src/security/sealing.js';
import { generateX25519, type X25519KeyPair } from '../../src/kernel/crypto/crypto.js';
import type { HeartbeatFacts, PresenceFacts, Telemetry } from '../../src/reports/port.js';
import {
  createAgentTransport,
  type AgentTransport,
  type AgentTransportOptions,
} from '../../src/transport/agent/agent-transport.js';
import { startListener } from '../../src/transport/listener/listener.js';
import { eventually } from './eventually.js';
import { testKeyring } from './keyring.js';
import { createRawAgent, type RawAgent } from './raw-agent.js';

export interface ShiftedClock extends Clock {
  advance(milliseconds: number): void;
  /** Sets the wall clock alone, ahead or back. */
  jump(milliseconds: number): void;
}

export function createShiftedClock(): ShiftedClock {
  let [offset, jumped] = [0, 0];
  return {
    now: () => Date.now() + offset + jumped,
    monotonic: () => performance.now() + offset,
    advance(milliseconds) {
      offset += milliseconds;
    },
    jump(milliseconds) {
      jumped += milliseconds;
    },
  };
}

interface FakeNodeSession {
  readonly nodeId: string;
  readonly sessionId: string;
  readonly slot: PushSlot;
  readonly requests: { readonly version: bigint; readonly checksum: Uint8Array }[];
  readonly reports: ApplyReport[];
  readonly sent: SnapshotPush[];
  closed: boolean;
}

interface FakeTelemetry extends Telemetry {
  readonly opened: { readonly nodeId: string; readonly presence: PresenceFacts; readonly offlineAfterMs: number }[];
  readonly alives: { readonly nodeId: string; readonly presence: PresenceFacts }[];
  readonly heartbeats: HeartbeatFacts[];
  readonly reports: object[];
  readonly ended: string[];
  failOpening: boolean;
  lose(nodeId: string, sessionId: string): void;
}

export interface AgentFixture {
  readonly transport: AgentTransport;
  readonly host: string;
  readonly port: number;
  readonly clock: ShiftedClock;
  readonly servicePublic: Uint8Array;
  readonly servicePrivate: Uint8Array;
  readonly telemetry: FakeTelemetry;
  readonly facts: AgentEvent[];
  readonly nodeSessions: FakeNodeSession[];
  /** What was given to the sampled log. */
  readonly refusals: { readonly reason: string; readonly address?: string }[];
  /** Log lines about sessions. */
  readonly changes: { readonly message: string; readonly [field: string]: unknown }[];
  /** Whether the app says that the stores are out of reach. */
  storesAway: boolean;
  /** The answer to the next ConfigRequests. */
  answer: (version: bigint) => ConfigAnswer | Promise<ConfigAnswer>;
  /** What a session that was sent a snapshot is told about its report. */
  reportTurn: () => Promise<void> | undefined;
  settings: SettingsState;
  setState(state: ServingState): void;
  /**
   * Creates a node, or gives an existing one another PSK.
   * @returns the PSK as text
   */
  issue(nodeId: string, secret?: Uint8Array): Promise<string>;
  /** Gives a node a candidate of its PSK, as text. */
  issueCandidate(nodeId: string): string;
  dropCandidate(nodeId: string): void;
  /** How many PSKs a handshake is tried with. */
  tries: number;
  /** What the proof of a candidate waits for. */
  proof: Promise<void> | undefined;
  /** Makes the node's verifier one that cannot be opened. */
  spoilVerifier(nodeId: string): void;
  /** Does what a PSK reset or a deletion does: removes the verifier and notifies the listeners. */
  revoke(nodeId: string): void;
  /** An agent of this node, which gets a PSK, until the fixture closes. */
  agent(nodeId?: string): Promise<RawAgent>;
  /** Connects an agent, and waits until its session is recorded. */
  live(agent: RawAgent, hello?: Partial<AgentHello>): ReturnType<RawAgent['connect']>;
  close(): Promise<void>;
}

export const instanceId = 'instance-1';

const plenty = { perSecond: 1e9, burst: 1e9 };
/** For a test whose agent says more than one may. */
export const unlimited = { payloads: plenty, entries: plenty, bytes: plenty };

/** @param bytes about how long the payload is */
export function snapshotPush(generation: number, bytes = 0): SnapshotPush {
  const checksum = Buffer.alloc(32, generation);
  const snapshot = RuntimeConfigSnapshot.fromPartial({ generation: BigInt(generation), checksum });
  const update = ConfigUpdate.fromPartial({
    update: { $case: 'snapshot', value: { ...snapshot, nodeId: 'x'.repeat(bytes) } },
  });
  const payload = ServicePayload.encode({ payload: { $case: 'configUpdate', value: update } }).finish();
  return { generation, checksum, payload };
}

/** What a test may put in place of the fakes. */
interface RealParts {
  readonly facts?: Pick<FactRecorder, 'agent' | 'drop'>;
  readonly clock?: ShiftedClock;
  readonly instanceId?: string;
  /** Shared by the instances of one service. */
  readonly identity?: X25519KeyPair;
}

export async function startAgentFixture(
  options: Partial<AgentTransportOptions> = {},
  real: RealParts = {},
): Promise<AgentFixture> {
  const clock = real.clock ?? createShiftedClock();
  const identity = real.identity ?? generateX25519();
  const keyring = testKeyring();
  /** The PSK of each node, and its candidate behind it. */
  const psks = new Map<string, readonly AcceptedPsk[]>();
  const revokedListeners = new Set<(nodeId: string) => void>();
  const endedListeners = new Set<(nodeId: string | undefined) => void>();
  const stateListeners = new Set<(state: ServingState) => void>();
  let deliveryState: ServingState = { kind: 'ready' };
  const facts: AgentEvent[] = [];
  const nodeSessions: FakeNodeSession[] = [];
  const refusals: AgentFixture['refusals'] = [];
  const changes: AgentFixture['changes'] = [];
  const telemetry = createFakeTelemetry();
  const agents: RawAgent[] = [];

  const delivery: Delivery = {
    state: () => deliveryState,
    onStateChange(listener) {
      stateListeners.add(listener);
      return () => stateListeners.delete(listener);
    },
    node: (nodeId) =>
      psks.has(nodeId) ? ({ id: nodeId, public_ipv4: null, public_ipv6: null } as unknown as NodeState) : undefined,
    settings: () => fixture.settings,
    psks: (nodeId) => psks.get(nodeId) ?? [],
    pskTries: () => fixture.tries,
    onPsksEnded(listener) {
      endedListeners.add(listener);
      return () => endedListeners.delete(listener);
    },
    atHead: async () => true,
    generation: () => 1,
    onRevoked(listener) {
      revokedListeners.add(listener);
      return () => revokedListeners.delete(listener);
    },
    openNodeSession(nodeId, sessionId, slot) {
      const nodeSession: FakeNodeSession = {
        nodeId,
        sessionId,
        slot,
        requests: [],
        reports: [],
        sent: [],
        closed: false,
      };
      nodeSessions.push(nodeSession);
      return {
        async request(version, checksum) {
          nodeSession.requests.push({ version, checksum });
          return fixture.answer(version);
        },
        reportTurn: () => fixture.reportTurn(),
        async report(outcome) {
          nodeSession.reports.push(outcome);
        },
        beat: () => true,
        reload: () => Promise.resolve(),
        sent: (push) => nodeSession.sent.push(push),
        close() {
          nodeSession.closed = true;
        },
      };
    },
    pushed: unused,
    unsentMs: unused,
    snapshotJson: unused,
    close: async () => undefined,
  };

  const transport = await createAgentTransport(
    {
      delivery,
      telemetry,
      facts: real.facts ?? {
        async agent(_nodeId, event) {
          facts.push(event);
          return 'recorded';
        },
        drop: () => undefined,
      },
      keyring,
      clock,
      logger: silentLogger,
      sessionLog: { ...silentLogger, info: (fields, message) => void changes.push({ message, ...fields }) },
      refusals: { note: (event) => void refusals.push(event) },
      instanceId: real.instanceId ?? instanceId,
      serviceKeys: { pairOf: () => identity },
      async proveCandidate(nodeId, fingerprint) {
        await fixture.proof;
        const candidate = (psks.get(nodeId) ?? []).find((psk) => psk.fingerprint === fingerprint);
        if (candidate === undefined) return false;
        psks.set(nodeId, [{ ...candidate, isCandidate: false }]);
        for (const listener of endedListeners) listener(nodeId);
        return true;
      },
      listen: startListener,
      reportAddress: async () => undefined,
      diagnostics: { take: async () => undefined },
      hasCommands: () => false,
      claimCommands: async () => [],
      join: unused,
      storesAway: () => fixture.storesAway,
      random: () => 0.25,
    },
    {
      listen: { host: '127.0.0.1', port: 0 },
      rekeySeconds: 21_600,
      failuresPerAddress: { perSecond: 5, burst: 50 },
      pendingSessions: 8192,
      handshakeCpuShare: 1,
      maxConnections: 1000,
      proxyFrom: [],
      ...options,
    },
  );
  const [host = '', port = ''] = transport.address.split(':');

  const made = (nodeId: string, secret?: Uint8Array) => {
    const { controlPsk, verifier, fingerprint } = issueControlPsk(identity.publicKey, secret);
    const sealed = sealVerifier(keyring, verifier, nodeId);
    return { controlPsk, accepted: { fingerprint, verifier: sealed, isCandidate: false } };
  };

  const fixture: AgentFixture = {
    transport,
    host,
    port: Number(port),
    clock,
    servicePublic: identity.publicKey,
    servicePrivate: identity.privateKey,
    telemetry,
    facts,
    nodeSessions,
    refusals,
    changes,
    storesAway: false,
    tries: 1,
    proof: undefined,
    answer: () => ({ kind: 'snapshot', push: snapshotPush(1) }),
    reportTurn: () => undefined,
    settings: defaultSettings,
    setState(state) {
      deliveryState = state;
      for (const listener of stateListeners) listener(state);
    },
    async issue(nodeId, secret) {
      const { controlPsk, accepted } = made(nodeId, secret);
      psks.set(nodeId, [accepted]);
      return controlPsk;
    },
    issueCandidate(nodeId) {
      const { controlPsk, accepted } = made(nodeId);
      psks.set(nodeId, [...(psks.get(nodeId) ?? []).slice(0, 1), { ...accepted, isCandidate: true }]);
      fixture.tries = 2;
      return controlPsk;
    },
    dropCandidate: (nodeId) => void psks.set(nodeId, (psks.get(nodeId) ?? []).slice(0, 1)),
    spoilVerifier(nodeId) {
      const [psk] = psks.get(nodeId) ?? [];
      if (psk === undefined) return;
      const verifier = psk.verifier as SealedValue;
      psks.set(nodeId, [{ ...psk, verifier: { ...verifier, ct: verifier.nonce } }]);
    },
    revoke(nodeId) {
      psks.delete(nodeId);
      for (const listener of revokedListeners) listener(nodeId);
    },
    async agent(nodeId = 'node-1') {
      const agent = createRawAgent(fixture, nodeId, await fixture.issue(nodeId));
      agents.push(agent);
      return agent;
    },
    async live(agent, hello) {
      const before = telemetry.opened.length;
      const stream = await agent.connect(hello);
      await eventually(() => telemetry.opened.length).toBe(before + 1);
      return stream;
    },
    async close() {
      for (const agent of agents.splice(0)) agent.disconnect();
      await transport.close(1000);
    },
  };
  return fixture;
}

function unused(): never {
  throw new Error('not part of these tests');
}

function createFakeTelemetry(): FakeTelemetry {
  const lostListeners = new Set<(nodeId: string, sessionId: string) => void>();
  const fake: FakeTelemetry = {
    opened: [],
    alives: [],
    heartbeats: [],
    reports: [],
    ended: [],
    failOpening: false,
    lose(nodeId, sessionId) {
      for (const listener of lostListeners) listener(nodeId, sessionId);
    },
    async sessionOpened(nodeId, presence, offlineAfterMs) {
      if (fake.failOpening) throw new Error('the read store is out of reach');
      fake.opened.push({ nodeId, presence, offlineAfterMs });
    },
    alive(nodeId, presence, _offlineAfterMs, heartbeat) {
      fake.alives.push({ nodeId, presence });
      if (heartbeat !== undefined) fake.heartbeats.push(heartbeat);
    },
    metrics: (_nodeId, report) => fake.reports.push(report),
    async sessionEnded(_nodeId, sessionId) {
      fake.ended.push(sessionId);
    },
    onLost(listener) {
      lostListeners.add(listener);
      return () => lostListeners.delete(listener);
    },
    trafficMetrics: unused,
    activity: unused,
  };
  return fake;
}

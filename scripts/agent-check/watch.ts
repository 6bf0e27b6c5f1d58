/**
 * Checks the rules that hold for every agent in every scenario: handshakes, the order of first payloads, what a report
 * repeats, counters that do not fall. Remembers what was sent to the agent's process and what it reported.
 */
import {
  ConfigApplyReport,
  ConfigApplyStatus,
  type ConfigRequest,
  type RuntimeConfigSnapshot,
} from '../../src/gen/svc/control/v1/config.js';
import { Command } from '../../src/gen/svc/control/v1/command.js';
import type { HeartbeatRequest } from '../../src/gen/svc/control/v1/heartbeat.js';
import type { MetricsReport } from '../../src/gen/svc/control/v1/metrics.js';
import type { AgentHello, OpenSessionRequest, SessionOffer } from '../../src/gen/svc/control/v1/session.js';
import { limits } from '../../src/kernel/limits.js';
import type { AgentMessage } from '../../src/transport/agent/agent-payload.js';
import type { Granted, PlayedSession } from './session.js';
import type { Verdicts } from './verdicts.js';

interface Applied {
  readonly generation: bigint;
  readonly checksum: Buffer;
}

/** The state of the agent's process, by its own reports. */
interface Held {
  applied: Applied | undefined;
  /** The last one applied that was confirmed or needed no confirmation: what it goes back to. */
  safe: Applied | undefined;
  lastReport: ConfigApplyReport | undefined;
}

export interface Watch {
  readonly held: Readonly<Held>;
  /** @returns false if nothing more can be checked on this attempt */
  offered(request: OpenSessionRequest, offer: SessionOffer | undefined): boolean;
  attached(granted: Granted, peer: string): void;
  sent(snapshot: RuntimeConfigSnapshot): void;
  confirmed(generation: bigint): void;
  commanded(commands: readonly Command[]): void;
  said(message: AgentMessage, session: PlayedSession): void;
  /** A new process follows, which has no state. */
  forget(): void;
}

const ephemeralBytes = 32;
/** Clocks and machines differ, but not by that much. */
const mostClockMs = 86_400_000;
const mostLateSeconds = 60;

const routeStates: ReadonlySet<string> = new Set(['target_unreachable', 'target_unusable']);

export function createWatch(verdicts: () => Verdicts): Watch {
  const ephemerals = new Set<string>();
  const nonces = new Set<string>();
  /** Checksums of sent snapshots, by generation. */
  const sent = new Map<bigint, Set<string>>();
  /** Generations that are still to be confirmed. */
  const unconfirmed = new Set<bigint>();
  /** Snapshots that no report has answered yet. */
  let outstanding = 0;
  let processId = '';
  /** The last heartbeat of the process. */
  let beat: { readonly at: number; readonly uptimeSeconds: number } | undefined;
  /** Whether its hello names the feature `route_state`. */
  let tellsStates = false;
  /** Whether it owes a report of diagnostics. */
  let isAsked = false;
  let counters = new Map<string, bigint>();
  let held: Held = { applied: undefined, safe: undefined, lastReport: undefined };
  const check: Verdicts['check'] = (...given) => verdicts().check(...given);

  const forget = (): void => {
    held = { applied: undefined, safe: undefined, lastReport: undefined };
    counters = new Map();
    processId = '';
    beat = undefined;
    outstanding = 0;
  };

  const hello = ({ processId: id, features }: AgentHello, isFirst: boolean): void => {
    tellsStates = features.includes('route_state');
    if (!isFirst) return void check('firstPayloads', false, 'a second hello on one session');
    if (id.length === 0) return;
    const text = id.toString('hex');
    check('processId', processId === '' || processId === text, 'process_id changed without a restart');
    processId = text;
  };

  const request = ({ configVersion, checksum }: ConfigRequest, session: PlayedSession, isFirst: boolean): void => {
    // A snapshot that is being applied right now may be named or not.
    if (outstanding > 0) return;
    const { applied } = held;
    const isFresh = configVersion === 0n;
    const isApplied =
      configVersion === applied?.generation && (checksum.length === 0 || checksum.equals(applied.checksum));
    const expected = applied === undefined ? '0' : `${applied.generation} with its checksum`;
    const observed = `it names ${configVersion} with checksum ${checksum.toString('hex') || '(none)'}, expected ${expected}`;
    check('request', isApplied || (isFresh && (applied === undefined || !isFirst)), observed);
    if (isFirst) repeats(session);
  };
  const repeats = (session: PlayedSession): void => {
    if (held.lastReport === undefined) return;
    const repeated = session.said.find(({ message }) => message.$case === 'applyReport')?.message;
    const isSame = repeated?.$case === 'applyReport' && bytesOf(repeated.value).equals(bytesOf(held.lastReport));
    const observed =
      repeated === undefined
        ? 'no report before the ConfigRequest of a new session'
        : 'a different report than the last one';
    check('repeatsReport', isSame, observed);
  };

  const report = (value: ConfigApplyReport, isNew: boolean): void => {
    const checksums = sent.get(value.generation);
    const wasSent = checksums !== undefined;
    if (check('report', wasSent, `a report on generation ${value.generation}, which was never sent`)) {
      const isEcho = checksums?.has(value.checksum.toString('hex')) ?? false;
      check(
        'checksumEchoed',
        isEcho,
        `checksum ${value.checksum.toString('hex') || '(none)'} for generation ${value.generation}`,
      );
    }
    const isKnown = value.status === ConfigApplyStatus.APPLIED || value.status === ConfigApplyStatus.REJECTED;
    check('report', isKnown, `status ${value.status}`);
    check('errorsBound', value.errors.length <= limits.agent.applyErrors, `${value.errors.length} errors`);
    if (isNew) outstanding = 0;
    held.lastReport = value;
    const { generation, checksum, status } = value;
    if (status === ConfigApplyStatus.APPLIED) {
      held.applied = { generation, checksum };
      if (!unconfirmed.has(generation)) held.safe = held.applied;
    } else if (generation === held.applied?.generation && unconfirmed.has(generation)) {
      held.applied = held.safe;
    }
  };

  const rises = (name: string, value: bigint | undefined): void => {
    if (value === undefined) return;
    const before = counters.get(name) ?? 0n;
    check('countersRise', value >= before, `${name} fell from ${before} to ${value}`);
    counters.set(name, value);
  };
  const measures = (heartbeat: HeartbeatRequest, at: number): void => {
    const { cpuUsage, memoryUsage, timestamp } = heartbeat;
    const areShares = [cpuUsage, memoryUsage].every((share) => share >= 0 && share <= 1);
    check('shares', areShares, `cpu_usage ${cpuUsage}, memory_usage ${memoryUsage}`);
    if (timestamp !== undefined) {
      const apartMs = Math.abs(Number(timestamp.seconds) * 1000 - Date.now());
      check('timestamp', apartMs < mostClockMs, `timestamp of ${timestamp.seconds} s since 1970`);
    }
    const uptimeSeconds = Number(heartbeat.uptimeSeconds);
    const passed = beat && (at - beat.at) / 1000;
    const grown = uptimeSeconds - (beat?.uptimeSeconds ?? uptimeSeconds);
    if (passed !== undefined) {
      const isInTime = grown >= 0 && grown <= passed + mostLateSeconds;
      check('uptime', isInTime, `uptime_seconds grew by ${grown} in ${Math.round(passed)} s`);
    }
    beat = { at, uptimeSeconds };
  };
  const heartbeat = ({ runtimeListeners }: HeartbeatRequest): void => {
    for (const { transport, listenAddr, listenPort, routes, bytesIn, bytesOut, totalSessions } of runtimeListeners) {
      const name = `${transport} ${listenAddr}:${listenPort}`;
      for (const { matchKind, state } of routes) {
        const isKnown = tellsStates && matchKind === 'reality' && routeStates.has(state);
        const feature = tellsStates ? '' : ', without the feature route_state';
        check('routeState', state === '' || isKnown, `state "${state}" of a ${matchKind} route of ${name}${feature}`);
      }
      rises(`bytes_in of ${name}`, bytesIn);
      rises(`bytes_out of ${name}`, bytesOut);
      rises(`total_sessions of ${name}`, totalSessions);
    }
  };
  const metrics = ({ connections, bandwidth }: MetricsReport): void => {
    rises('connections.accepted', connections?.accepted);
    rises('bandwidth.bytes_in', bandwidth?.bytesIn);
    rises('bandwidth.bytes_out', bandwidth?.bytesOut);
  };

  return {
    get held() {
      return held;
    },
    offered({ protocolVersion, handshake }, offer) {
      check('protocolVersion', protocolVersion === limits.agent.protocolVersion, `protocol_version ${protocolVersion}`);
      const { min, max } = limits.agent.handshakeBytes;
      const isSized = handshake.length >= min && handshake.length <= max;
      const ephemeral = handshake.subarray(0, ephemeralBytes).toString('hex');
      check('newMessageOne', !ephemerals.has(ephemeral), 'message 1 has an ephemeral key that was used before');
      ephemerals.add(ephemeral);
      const observed = isSized
        ? 'message 1 does not authenticate: see the handshake vectors of examples/fixtures'
        : `handshake has ${handshake.length} bytes`;
      if (!check('messageOne', isSized && offer !== undefined, observed) || offer === undefined) return false;
      const nonce = offer.nonce.toString('hex');
      check('nonce', offer.nonce.length === limits.agent.nonceBytes, `nonce of ${offer.nonce.length} bytes`);
      check('newMessageOne', !nonces.has(nonce), 'a nonce that was used before');
      nonces.add(nonce);
      return true;
    },
    attached(granted, peer) {
      check('oneConnection', granted.peer === peer, 'Control came on another connection than OpenSession');
    },
    commanded: (commands) => void (isAsked ||= commands.includes(Command.RUN_DIAGNOSTICS)),
    sent(snapshot) {
      outstanding += 1;
      if (snapshot.confirmWithinSecs !== undefined) unconfirmed.add(snapshot.generation);
      const known = sent.get(snapshot.generation) ?? new Set();
      sent.set(snapshot.generation, known.add(snapshot.checksum.toString('hex')));
    },
    confirmed(generation) {
      unconfirmed.delete(generation);
      if (held.applied?.generation === generation) held.safe = held.applied;
    },
    said(message, session) {
      const before = session.said.slice(0, -1).map((said) => said.message);
      if (before.length === 0) check('helloFirst', message.$case === 'hello', `the first payload is ${message.$case}`);
      if (message.$case === 'hello') hello(message.value, before.length === 0);
      const asked = before.some(({ $case }) => $case === 'configRequest');
      if (message.$case === 'configRequest') request(message.value, session, !asked);
      if (message.$case === 'applyReport') report(message.value, asked);
      if (message.$case === 'heartbeat') {
        measures(message.value, session.said.at(-1)?.at ?? 0);
        heartbeat(message.value);
      }
      if (message.$case === 'metrics') metrics(message.value);
      if (message.$case === 'diagnostics') {
        check('diagnosticsAsked', isAsked, 'a DiagnosticsReport without the command');
        // A report that is too large does not count as a message.
        check('diagnosticsBound', true, '');
        isAsked = false;
      }
    },
    forget,
  };
}

const bytesOf = (report: ConfigApplyReport): Buffer => Buffer.from(ConfigApplyReport.encode(report).finish());

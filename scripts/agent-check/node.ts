/**
 * One node as the kit plays the service for it: its PSK, its configuration, its answers. A scenario changes `plays` and
 * serves snapshots; everything else is answered as the service would.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { Metadata, status, type sendUnaryData, type ServerDuplexStream, type ServerUnaryCall } from '@grpc/grpc-js';
import { agentKeysFrom, encodeControlPsk } from '../../src/channel/noise/control-psk.js';
import { controlPrologue, respond, sessionIdOf } from '../../src/channel/noise/handshake.js';
import type { Command } from '../../src/gen/svc/control/v1/command.js';
import {
  ConfigApplyStatus,
  type ConfigApplyReport,
  type ConfigRequest,
  type RuntimeConfigSnapshot,
} from '../../src/gen/svc/control/v1/config.js';
import type { HeartbeatRequest } from '../../src/gen/svc/control/v1/heartbeat.js';
import {
  SessionGrant,
  SessionOffer,
  type OpenSessionRequest,
  type OpenSessionResponse,
  type SecureFrame,
} from '../../src/gen/svc/control/v1/session.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { limits } from '../../src/kernel/limits.js';
import type { AgentMessage } from '../../src/transport/agent/agent-payload.js';
import { playSession, type Granted, type PlayedSession, type ServiceMessage } from './session.js';
import { createVerdicts, type Verdicts } from './verdicts.js';
import { createWatch, type Watch } from './watch.js';

interface Refusal {
  readonly code: number;
  readonly trailer?: Readonly<Record<string, string>>;
}

/** How the service behaves. A scenario sets the parts it is about. */
export interface Plays {
  /** How far the service's clock is ahead. */
  clockOffsetMs: number;
  grant: { rekeyAfterSecs: number; heartbeatIntervalSecs: number; metricsIntervalSecs: number };
  /** Whether this authenticated OpenSession is refused. */
  refuse: (() => Refusal | undefined) | undefined;
  /** Changes the answer to OpenSession. */
  forge: ((answer: OpenSessionResponse) => OpenSessionResponse) | undefined;
  openDelayMs: number;
  /** Whether heartbeats are answered. */
  answers: boolean;
  /** Sent in the next answer to a heartbeat. */
  commands: Command[];
  endDelayMs: number;
}

/** Intervals that tolerate a slow machine: three missing answers end a session. */
const usual = (): Plays => ({
  clockOffsetMs: 0,
  grant: { rekeyAfterSecs: 21_600, heartbeatIntervalSecs: 10, metricsIntervalSecs: 10 },
  refuse: undefined,
  forge: undefined,
  openDelayMs: 0,
  answers: true,
  commands: [],
  endDelayMs: 0,
});

/** One call of OpenSession. */
export interface OpenAttempt {
  readonly at: number;
  readonly peer: string;
  /** Undefined if message 1 did not authenticate. */
  readonly offer: SessionOffer | undefined;
  readonly granted: boolean;
}

export interface PlayedNode {
  readonly nodeId: string;
  readonly controlPsk: string;
  /** The PSK and the keys that come from it, in the forms in which a log may show them. */
  readonly secretTexts: readonly string[];
  readonly plays: Plays;
  readonly watch: Watch;
  readonly verdicts: Verdicts;
  readonly opens: readonly OpenAttempt[];
  readonly sessions: readonly PlayedSession[];
  /** A generation above all earlier ones. */
  nextGeneration(): bigint;
  /** Makes a snapshot the node's target, and pushes it on the live session. */
  serve(snapshot: RuntimeConfigSnapshot): void;
  /** Confirms the target on the live session. */
  confirm(): void;
  /** Resolves with the result of `find` as soon as it is not undefined; with undefined after `withinMs`. */
  until<T>(find: () => T | undefined, withinMs: number): Promise<T | undefined>;
  /** Starts another scenario: the usual behaviour, new verdicts. */
  begin(): void;
}

/** Called by the listener. */
export interface NodeCalls {
  openSession(
    call: ServerUnaryCall<OpenSessionRequest, OpenSessionResponse>,
    answer: sendUnaryData<OpenSessionResponse>,
    remember: (granted: Granted) => void,
  ): void;
  control(call: ServerDuplexStream<SecureFrame, SecureFrame>, granted: Granted, first: SecureFrame): void;
}

export function createNode(): PlayedNode & NodeCalls {
  const nodeId = randomUUID();
  const service = generateX25519();
  const secret = randomBytes(32);
  const controlPsk = encodeControlPsk({ secret, servicePublic: service.publicKey });
  const decoded = agentKeysFrom(controlPsk);
  if (!decoded.ok) throw new Error(decoded.error);
  const keys = decoded.value;
  const plays = usual();
  const opens: OpenAttempt[] = [];
  const sessions: PlayedSession[] = [];
  const waiters = new Set<() => void>();
  let verdicts = createVerdicts();
  let target: RuntimeConfigSnapshot | undefined;
  let lastGood: RuntimeConfigSnapshot | undefined;
  let generation = 100n;
  const watch = createWatch(() => verdicts);
  const changed = (): void => {
    for (const waiter of waiters) waiter();
  };

  const answerRequest = (request: ConfigRequest, session: PlayedSession): void => {
    if (target === undefined) return;
    const isTarget = request.configVersion === target.generation && request.checksum.equals(target.checksum);
    if (isTarget) session.send(unchanged(target.generation));
    else push(session, target);
  };
  const push = (session: PlayedSession, snapshot: RuntimeConfigSnapshot): void => {
    watch.sent(snapshot);
    session.send(snapshotUpdate(snapshot));
  };
  const answerHeartbeat = (heartbeat: HeartbeatRequest, session: PlayedSession): void => {
    if (!plays.answers) return;
    const commands = plays.commands.splice(0);
    watch.commanded(commands);
    session.send({
      $case: 'heartbeatResponse',
      value: { ok: true, ackSequence: heartbeat.sequence, commands, ...intervals() },
    });
  };
  const intervals = (): { readonly heartbeatIntervalSecs: number; readonly metricsIntervalSecs: number } => ({
    heartbeatIntervalSecs: plays.grant.heartbeatIntervalSecs,
    metricsIntervalSecs: plays.grant.metricsIntervalSecs,
  });
  /** The target follows the agent's reports: after a reject, the last generation that it applied. */
  const noteReport = (report: ConfigApplyReport): void => {
    if (report.generation !== target?.generation) return;
    if (report.status !== ConfigApplyStatus.APPLIED) target = lastGood ?? target;
    else if (target.confirmWithinSecs === undefined) lastGood = target;
  };

  const onSaid = (message: AgentMessage, session: PlayedSession): void => {
    watch.said(message, session);
    if (message.$case === 'heartbeat') answerHeartbeat(message.value, session);
    if (message.$case === 'configRequest') answerRequest(message.value, session);
    if (message.$case === 'applyReport') noteReport(message.value);
  };

  return {
    nodeId,
    controlPsk,
    secretTexts: [secret, keys.psk, keys.nodeStatic.privateKey].flatMap((key) => textsOf(Buffer.from(key))),
    plays,
    watch,
    get verdicts() {
      return verdicts;
    },
    opens,
    sessions,
    nextGeneration: () => (generation += 1n),
    serve(snapshot) {
      target = snapshot;
      const live = sessions.findLast(({ endedAt }) => endedAt === undefined);
      if (live !== undefined && live.said.some(({ message }) => message.$case === 'configRequest'))
        push(live, snapshot);
    },
    confirm() {
      if (target === undefined) return;
      const { generation } = target;
      lastGood = target;
      watch.confirmed(generation);
      const live = sessions.findLast(({ endedAt }) => endedAt === undefined);
      live?.send({ $case: 'configConfirmed', value: { generation } });
    },
    until(find, withinMs) {
      return new Promise((resolve) => {
        const settle = (value: ReturnType<typeof find>): void => {
          clearTimeout(timer);
          waiters.delete(look);
          resolve(value);
        };
        const look = (): void => {
          const found = find();
          if (found !== undefined) settle(found);
        };
        const timer = setTimeout(() => settle(find()), withinMs);
        waiters.add(look);
        look();
      });
    },
    begin() {
      Object.assign(plays, usual());
      verdicts = createVerdicts();
    },
    openSession(call, answer, remember) {
      const peer = call.getPeer();
      const { request } = call;
      const note = (offer: SessionOffer | undefined, granted: boolean): void => {
        opens.push({ at: performance.now(), peer, offer, granted });
        changed();
      };
      const refuse = ({ code, trailer = {} }: Refusal): void => {
        const metadata = new Metadata();
        for (const [name, value] of Object.entries(trailer)) metadata.set(name, value);
        answer({ code, details: 'refused by the kit', metadata });
      };
      const party = {
        prologue: controlPrologue(nodeId),
        psk: keys.psk,
        localStatic: service,
        remoteStatic: keys.nodeStatic.publicKey,
      };
      const started = respond(party, request.handshake);
      const offer = started.ok ? offerOf(started.value.payload) : undefined;
      if (!watch.offered(request, offer) || !started.ok || offer === undefined) {
        note(undefined, false);
        return refuse({ code: status.UNAUTHENTICATED });
      }
      const now = Date.now() + plays.clockOffsetMs;
      const skewed = Math.abs(Number(offer.timestampMs) - now) > limits.agent.clockSkewMs;
      const refusal = skewed
        ? { code: status.FAILED_PRECONDITION, trailer: { 'server-time-ms': String(now) } }
        : plays.refuse?.();
      note(offer, refusal === undefined);
      if (refusal !== undefined) return refuse(refusal);
      const grant: SessionGrant = { ...plays.grant, serverTimeMs: BigInt(now) };
      const noise = started.value.finish(SessionGrant.encode(grant).finish());
      if (!noise.ok) return refuse({ code: status.INTERNAL });
      const sessionId = Buffer.from(sessionIdOf(noise.value.handshakeHash));
      const response = { sessionId, handshake: Buffer.from(noise.value.message) };
      const granted = { nodeId, sessionId, noise: noise.value, grant, peer, at: performance.now() };
      remember(granted);
      const said = plays.forge?.(response) ?? response;
      // An agent that believes a forged id attaches with it.
      if (!said.sessionId.equals(sessionId)) remember({ ...granted, sessionId: said.sessionId });
      setTimeout(() => answer(null, said), plays.openDelayMs);
    },
    control(call, granted, first) {
      watch.attached(granted, call.getPeer());
      const session = playSession(call, granted, first, {
        verdicts: () => verdicts,
        onSaid,
        onChange: changed,
        endDelayMs: () => plays.endDelayMs,
      });
      sessions.push(session);
      changed();
    },
  };
}

/** Base64 without its last digits, which may belong to what follows. */
const textsOf = (key: Buffer): readonly string[] => [
  key.toString('hex'),
  key.toString('base64').slice(0, 42),
  key.toString('base64url').slice(0, 42),
];

export const snapshotUpdate = (value: RuntimeConfigSnapshot): ServiceMessage => ({
  $case: 'configUpdate',
  value: { update: { $case: 'snapshot', value } },
});

export const unchanged = (generation: bigint): ServiceMessage => ({
  $case: 'configUpdate',
  value: { update: { $case: 'unchanged', value: { generation } } },
});

function offerOf(bytes: Uint8Array): SessionOffer | undefined {
  try {
    return SessionOffer.decode(bytes);
  } catch {
    return undefined;
  }
}

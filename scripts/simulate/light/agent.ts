/**
 * One light agent: keeps a session with the service, without a data plane. It reconnects, rekeys and backs off like the
 * reference agent, by the same rules (`src/agent/control/reconnect.ts`). Implements the agent's side of
 * `docs/contract/agent-protocol.md#rekey`.
 */
import { createReconnectPace, rekeyDelay, type ConnectionEnd } from '../../../src/agent/control/reconnect.js';
import { openTimeoutMs } from '../../../src/agent/control/client.js';
import { SessionCloseReason } from '../../../src/gen/svc/control/v1/session.js';
import { GrpcStatus } from '../../../src/kernel/errors.js';
import type { HostPort } from '../../../src/kernel/host-port.js';
import { limits } from '../../../src/kernel/limits.js';
import { defaultWindow, openConnection, type Connection } from './connection.js';
import { createDuties, type AgentEvents, type Behaviour, type Beating } from './duties.js';
import { openSession, type LightIdentity, type LightSession } from './session.js';
import type { Turns } from './turns.js';

/** The window of an agent that reads slowly. */
const slowWindowBytes = 1024;

export interface AgentOptions {
  readonly identity: LightIdentity;
  readonly endpoint: HostPort;
  readonly behaviour: Behaviour;
  /** Shared by agents; read at each heartbeat. */
  readonly beating: Beating;
  /** The table that this agent starts with. */
  readonly firstTable: number;
  readonly rekeySeconds: number;
  readonly random: () => number;
  readonly turn: Turns;
  readonly events: AgentEvents;
}

export interface LightAgent {
  readonly connected: boolean;
  /** The generation last applied; undefined before the first. */
  readonly applied: number | undefined;
  start(): void;
  /** Cuts the connection silently. The agent comes back after its backoff. */
  cut(): void;
  /** Restarts its heartbeats, at a random time within the interval. */
  beatAnew(): void;
  /** A slow reader reads the content of its window, once. */
  readOnce(): void;
  /** Changes how it reads and answers. */
  behave(behaviour: Behaviour): void;
  /** Sends SessionClose NORMAL and stays away. Resolves when the service has ended the stream, after 2 s at most. */
  close(): Promise<void>;
}

export function createLightAgent(options: AgentOptions): LightAgent {
  const { identity, events, random } = options;
  const pace = createReconnectPace(random);
  let behaviour = options.behaviour;
  let connection: Connection | undefined;
  let session: LightSession | undefined;
  let offsetMs = 0;
  let connected = false;
  let stopped = false;
  let retry: NodeJS.Timeout | undefined;
  let rekey: NodeJS.Timeout | undefined;
  let onceAway: (() => void) | undefined;
  const duties = createDuties({
    ...options,
    nodeId: identity.nodeId,
    behaviour: () => behaviour,
    lose: (detail) => connection?.destroy(detail),
  });

  const dial = (done: () => void): void => {
    if (stopped) return done();
    let end: ConnectionEnd | undefined;
    const timeout = setTimeout(() => mine.destroy('no session within the timeout'), openTimeoutMs);
    const over = (): void => {
      clearTimeout(timeout);
      done();
    };
    const mine = openConnection({
      endpoint: options.endpoint,
      windowBytes: behaviour.slow ? slowWindowBytes : defaultWindow,
      onClosed(detail) {
        over();
        if (connection === mine) lost(end ?? { kind: 'lost', detail });
      },
    });
    connection = mine;
    const finish = (value: ConnectionEnd): void => {
      end = value;
      mine.destroy('over');
    };
    const open = (mayRepeat: boolean): void =>
      openSession(mine, identity, Date.now() + offsetMs, {
        opened(opened) {
          pace.opened();
          attach(mine, opened, over, finish);
        },
        refused({ status, detail, serverTimeMs }) {
          if (mayRepeat && status === GrpcStatus.FAILED_PRECONDITION && serverTimeMs !== undefined) {
            offsetMs = serverTimeMs - Date.now();
            return open(false);
          }
          finish(endOf(status, detail));
        },
      });
    open(true);
  };

  /** Makes the session the agent's current one. @param answered called at the service's first payload */
  const attach = (
    on: Connection,
    opened: LightSession,
    answered: () => void,
    finish: (end: ConnectionEnd) => void,
  ): void => {
    session = opened;
    let silent = true;
    opened.attach({
      onHeard(heard) {
        if (session !== opened) return;
        if (silent) answered();
        silent = false;
        onAnswer(on);
        duties.hear(heard);
      },
      onEnd(end) {
        if (session === opened) finish(end);
        else onceAway?.();
      },
    });
    duties.begin(opened);
    clearTimeout(rekey);
    const rekeyIn = rekeyDelay(options.rekeySeconds, opened.grant.rekeyAfterSecs, random);
    rekey = setTimeout(() => startRekey(on, opened, finish), rekeyIn);
  };

  /** Make before break: the new session is open before the old one is closed. */
  const startRekey = (on: Connection, old: LightSession, finish: (end: ConnectionEnd) => void): void => {
    openSession(on, identity, Date.now() + offsetMs, {
      opened(next) {
        if (session !== old) return;
        session = undefined;
        duties.pause();
        const replace = (): void => {
          clearTimeout(timer);
          if (onceAway !== replace) return;
          onceAway = undefined;
          if (connection === on && !stopped) attach(on, next, events.onRekeyed, finish);
        };
        onceAway = replace;
        const timer = setTimeout(replace, limits.agentControl.closeWaitMs);
        old.say(closeOf(SessionCloseReason.REKEY));
        old.halfClose();
      },
      refused({ status, detail }) {
        if (session === old) finish(endOf(status, detail));
      },
    });
  };

  const onAnswer = (on: Connection): void => {
    pace.answered();
    if (connected) return;
    connected = true;
    if (behaviour.slow) on.reading(false);
    events.onConnected();
  };

  const lost = (end: ConnectionEnd): void => {
    const wasConnected = connected;
    connection = undefined;
    session = undefined;
    connected = false;
    duties.pause();
    clearTimeout(rekey);
    onceAway?.();
    if (stopped) return;
    events.onDisconnected(end, wasConnected);
    retry = setTimeout(() => options.turn(dial), pace.after(end));
  };

  return {
    get connected() {
      return connected;
    },
    get applied() {
      return duties.applied;
    },
    start: () => options.turn(dial),
    cut: () => connection?.destroy('cut by the simulator'),
    beatAnew: duties.beatAnew,
    readOnce() {
      connection?.reading(true);
      if (behaviour.slow) connection?.reading(false);
    },
    behave(next) {
      behaviour = next;
      connection?.reading(!next.slow);
    },
    async close() {
      stopped = true;
      duties.pause();
      for (const timer of [retry, rekey]) clearTimeout(timer);
      const [last, on] = [session, connection];
      session = undefined;
      connected = false;
      if (on === undefined) return;
      if (last !== undefined) {
        on.reading(true);
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, limits.agentControl.closeWaitMs);
          onceAway = () => {
            clearTimeout(timer);
            resolve();
          };
          last.say(closeOf(SessionCloseReason.NORMAL));
          last.halfClose();
        });
      }
      on.destroy('stopped');
    },
  };
}

const endOf = (status: number | undefined, detail: string): ConnectionEnd =>
  status === undefined ? { kind: 'lost', detail } : { kind: 'refused', status, detail };

const closeOf = (reason: SessionCloseReason) =>
  ({ $case: 'close', value: { reason, message: '', retryAfterMs: 0 } }) as const;

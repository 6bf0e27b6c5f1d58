/** The type of a scenario, and steps that many scenarios share. */
import {
  ConfigApplyStatus,
  type ConfigApplyReport,
  type RuntimeConfigSnapshot,
} from '../../src/gen/svc/control/v1/config.js';
import type { HeartbeatRequest } from '../../src/gen/svc/control/v1/heartbeat.js';
import type { AgentMessage } from '../../src/transport/agent/agent-payload.js';
import type { StartedAgent } from './agent-process.js';
import type { PlayedNode } from './node.js';
import type { SentenceName } from './sentences.js';
import type { PlayedSession } from './session.js';
import type { Site } from './site.js';
import type { Verdicts } from './verdicts.js';

export interface Play {
  readonly node: PlayedNode;
  readonly site: Site;
  /** Undefined if a person started the agent. */
  readonly agent: StartedAgent | undefined;
  readonly check: Verdicts['check'];
  /** How long the agent may take to come when nothing keeps it away. */
  readonly patienceMs: number;
  /** Resets a connection. */
  cut(peer: string): void;
}

export interface Scenario {
  readonly name: string;
  /** What the scenario does, for the report. */
  readonly about: string;
  /** Needs an agent that the kit can stop and start. */
  readonly restarts?: boolean;
  /** Waits as long as the agent must: only with `--slow`. */
  readonly isSlow?: boolean;
  play(play: Play): Promise<void>;
}

/** The agent has broken a sentence that the rest of the scenario depends on; this is already noted. */
export class CannotGoOn extends Error {}

/** For anything that the agent does by itself on an open session. */
const soonMs = 10_000;
/** For coming back after a session that was answered: a first backoff of at most a second, and time to connect. */
const backWithinMs = 15_000;

/**
 * The result of `find` as soon as it is not undefined.
 * @throws CannotGoOn after `withinMs`, after noting the sentence as broken
 */
export async function expectOf<T>(
  { node, check }: Play,
  sentence: SentenceName,
  missing: string,
  find: () => T | undefined,
  withinMs = soonMs,
): Promise<T> {
  const found = await node.until(find, withinMs);
  check(sentence, found !== undefined, `${missing} within ${withinMs / 1000} s`);
  if (found === undefined) throw new CannotGoOn(missing);
  return found;
}

type Case = AgentMessage['$case'];
type Of<C extends Case> = Extract<AgentMessage, { readonly $case: C }>['value'];

/** The agent's messages of one kind on a session, oldest first. */
export function saidOf<C extends Case>(session: PlayedSession, kind: C): readonly Of<C>[] {
  return session.said.flatMap(({ message }) => (message.$case === kind ? [message.value as Of<C>] : []));
}

/**
 * The session after the first `known` ones, once it has asked for configuration.
 * @param sentence is broken if it does not come
 */
export async function nextSession(
  play: Play,
  known: number,
  sentence: SentenceName = 'reconnects',
  withinMs = known === 0 ? play.patienceMs : backWithinMs,
): Promise<PlayedSession> {
  const session = await expectOf(play, sentence, 'no new session', () => play.node.sessions[known], withinMs);
  await expectOf(play, 'request', 'no ConfigRequest on a new session', () => saidOf(session, 'configRequest')[0]);
  return session;
}

/** The first session of a scenario. */
export async function firstSession(play: Play): Promise<PlayedSession> {
  const open = play.node.sessions.findIndex(({ endedAt }) => endedAt === undefined);
  return nextSession(play, open === -1 ? play.node.sessions.length : open, 'helloFirst');
}

/** Serves a snapshot and waits for the report on it. @param sentence is broken if there is none */
export async function reportOn(
  play: Play,
  snapshot: RuntimeConfigSnapshot,
  sentence: SentenceName = 'report',
): Promise<ConfigApplyReport> {
  const { node } = play;
  const reports = (): readonly ConfigApplyReport[] =>
    node.sessions.flatMap((session) => saidOf(session, 'applyReport'));
  const before = reports().length;
  node.serve(snapshot);
  const find = (): ConfigApplyReport | undefined =>
    reports()
      .slice(before)
      .find(({ generation }) => generation === snapshot.generation);
  return expectOf(play, sentence, `no report on generation ${snapshot.generation}`, find);
}

/** The currently open session: a slow machine may have cost an earlier one. */
export function liveSession({ node }: Play): PlayedSession {
  const live = node.sessions.findLast(({ endedAt }) => endedAt === undefined) ?? node.sessions.at(-1);
  if (live === undefined) throw new Error('no session yet');
  return live;
}

/** The same, for a snapshot that the agent must be able to run. When it returns, the service has answered the agent. */
export async function applied(play: Play, snapshot: RuntimeConfigSnapshot): Promise<void> {
  const report = await reportOn(play, snapshot);
  const why = report.errors.map(({ path, message }) => `${path}: ${message}`).join('; ');
  const isApplied = report.status === ConfigApplyStatus.APPLIED;
  if (!play.check('applyWhole', isApplied, `a snapshot of RAW rules alone was rejected (${why})`))
    throw new CannotGoOn(why);
}

/** The ports that the next heartbeat shows as running. */
export async function nextTable(play: Play): Promise<readonly number[]> {
  const heartbeats = (): readonly HeartbeatRequest[] =>
    play.node.sessions.flatMap((session) => saidOf(session, 'heartbeat'));
  const before = heartbeats().length;
  const { runtimeListeners } = await expectOf(play, 'heartbeat', 'no heartbeat', () => heartbeats()[before]);
  return runtimeListeners.filter(({ state }) => state === 'running').map(({ listenPort }) => listenPort);
}

/** Whether `find` keeps finding nothing for this long. */
export async function staysAway(play: Play, find: () => unknown, ms: number): Promise<boolean> {
  return (await play.node.until(() => (find() === undefined ? undefined : true), ms)) === undefined;
}

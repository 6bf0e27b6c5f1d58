/** How a session ends, and whether and when the agent comes back. */
import { status } from '@grpc/grpc-js';
import { SessionCloseReason as Reason } from '../../../src/gen/svc/control/v1/session.js';
import { applied, firstSession, liveSession, nextSession, staysAway, type Play, type Scenario } from '../play.js';
import type { SentenceName } from '../sentences.js';
import type { PlayedSession } from '../session.js';
import { makeSnapshot } from '../site.js';

/** The shortest wait that a backoff of 0.5 s may produce, allowing for a coarser clock. */
const leastBackoffMs = 350;
/** A first wait is at most a second; on a busy machine, this still tells it from one that has doubled often. */
const mostBackoffMs = 8_000;
/** A reason that only a later service sends. */
const reasonOfLater = 77 as Reason;

interface Ending {
  readonly what: string;
  readonly sentence: SentenceName;
  readonly leastMs: number;
  end(session: PlayedSession): void | Promise<void>;
}

const closedWith = (reason: Reason, code: number, sentence: SentenceName, retryAfterMs = 0): Ending => ({
  what: `SessionClose ${Object.entries(Reason).find(([, value]) => value === reason)?.[0] ?? 'of an unknown reason'}`,
  sentence,
  leastMs: Math.max(leastBackoffMs, retryAfterMs),
  end: (session) => session.close({ reason, message: 'the kit plays it', retryAfterMs }, code),
});
const bare = (code: number): Ending => ({
  what: `the bare status ${status[code] ?? code}`,
  sentence: 'bareStatus',
  leastMs: leastBackoffMs,
  end: (session) => session.drop(code),
});

/** After each of them, the agent has had an answer, so its backoff restarts. */
async function comesBack(play: Play, endings: readonly Ending[]): Promise<void> {
  const { node, site, check } = play;
  let session = await firstSession(play);
  for (const { what, sentence, leastMs, end } of endings) {
    await applied(play, makeSnapshot(node, site));
    session = liveSession(play);
    const opens = node.opens.length;
    const known = node.sessions.length;
    const endedAt = performance.now();
    await end(session);
    session = await nextSession(play, known, sentence);
    const waitedMs = (node.opens[opens]?.at ?? endedAt) - endedAt;
    check(sentence, waitedMs >= leastMs, `it came back ${Math.round(waitedMs)} ms after ${what}`);
    check(
      'backoff',
      waitedMs < leastMs + mostBackoffMs,
      `${Math.round(waitedMs)} ms after ${what}, with a session before`,
    );
  }
}

export const closes: Scenario = {
  name: 'closes',
  about: 'SessionClose of every reason after which the agent comes back',
  play: (play) =>
    comesBack(play, [
      closedWith(Reason.DRAINING, status.UNAVAILABLE, 'retryAfter', 2_000),
      closedWith(Reason.OVERLOADED, status.RESOURCE_EXHAUSTED, 'retryAfter', 2_000),
      closedWith(Reason.IDLE, status.DEADLINE_EXCEEDED, 'reconnects'),
      closedWith(Reason.EXPIRED, status.DEADLINE_EXCEEDED, 'reconnects'),
      closedWith(reasonOfLater, status.UNAVAILABLE, 'unknownReason'),
    ]),
};

export const bareStatuses: Scenario = {
  name: 'bare-statuses',
  about: 'streams that end with a status and no SessionClose, which must not be believed',
  play: (play) =>
    comesBack(play, [
      bare(status.PERMISSION_DENIED),
      bare(status.UNAUTHENTICATED),
      bare(status.ABORTED),
      bare(status.INVALID_ARGUMENT),
    ]),
};

interface Away {
  readonly reason: Reason;
  readonly code: number;
  readonly sentence: SentenceName;
  readonly leastMs: number;
}

/** How long a quick run watches. A backoff after a live session is over long before. */
const lookMs = 5_000;

function away(name: string, { reason, code, sentence, leastMs }: Away): readonly Scenario[] {
  const begin = async (play: Play): Promise<PlayedSession> => {
    await firstSession(play);
    await applied(play, makeSnapshot(play.node, play.site));
    return liveSession(play);
  };
  const closed = async (play: Play, session: PlayedSession, ms: number): Promise<void> => {
    const opens = play.node.opens.length;
    await session.close({ reason, message: 'the kit plays it' }, code);
    const endedAt = session.endedAt ?? 0;
    const isAway = await staysAway(play, () => play.node.opens[opens], ms);
    const after = Math.round((play.node.opens[opens]?.at ?? endedAt) - endedAt);
    play.check(sentence, isAway, `it tried again after ${after} ms`);
  };
  const quick: Scenario = {
    name,
    about: `SessionClose ${name.toUpperCase().replace('-', '_')}: the agent stays away, ${lookMs / 1000} s of it watched`,
    async play(play) {
      await closed(play, await begin(play), lookMs);
    },
  };
  const whole: Scenario = {
    name: `${name}-whole`,
    about: `the same, for the whole ${leastMs / 1000} s, and comes back`,
    isSlow: true,
    async play(play) {
      const session = await begin(play);
      const known = play.node.sessions.length;
      await closed(play, session, leastMs - 500);
      // Plus jitter.
      await nextSession(play, known, sentence, leastMs / 2 + 30_000);
    },
  };
  return [quick, whole];
}

export const awayScenarios: readonly Scenario[] = [
  ...away('superseded', {
    reason: Reason.SUPERSEDED,
    code: status.ABORTED,
    sentence: 'superseded',
    leastMs: 60_000,
  }),
  ...away('protocol-error', {
    reason: Reason.PROTOCOL_ERROR,
    code: status.INVALID_ARGUMENT,
    sentence: 'protocolError',
    leastMs: 30_000,
  }),
  ...away('revoked', {
    reason: Reason.REVOKED,
    code: status.PERMISSION_DENIED,
    sentence: 'revoked',
    leastMs: 300_000,
  }),
];

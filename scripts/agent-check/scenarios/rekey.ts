/** A session that is replaced: in time, in the right order, and not at all while the service refuses. */
import { status } from '@grpc/grpc-js';
import { SessionCloseReason } from '../../../src/gen/svc/control/v1/session.js';
import { applied, expectOf, firstSession, nextSession, saidOf, type Scenario } from '../play.js';
import type { PlayedSession } from '../session.js';
import { makeSnapshot } from '../site.js';

const rekeySeconds = 2;
/** A tenth for jitter, and time to open the session on a busy machine. */
const inTimeMs = { least: rekeySeconds * 1_000 * 0.9 - 50, most: 10_000 };
/** How long the service takes to end the old stream. */
const endDelayMs = 400;
const refusalsInARow = 2;
const firstPayloads = ['hello', 'applyReport', 'configRequest'] as const;
/** Two seconds, on a busy machine. The kit itself ends the stream later. */
const mostWaitMs = 7_000;

const closeOf = (session: PlayedSession): number | undefined =>
  session.said.find(({ message }) => message.$case === 'close' && message.value.reason === SessionCloseReason.REKEY)
    ?.at;

export const rekey: Scenario = {
  name: 'rekey',
  about: 'a session of two seconds is replaced; the next replacement is refused twice; then a stream is not ended',
  async play(play) {
    const { node, site, check } = play;
    node.plays.grant.rekeyAfterSecs = rekeySeconds;
    node.plays.endDelayMs = endDelayMs;
    // The scenario's first connection may still have an earlier grant.
    node.plays.grant.heartbeatIntervalSecs = 2;
    const session = await firstSession(play);
    await applied(play, makeSnapshot(node, site, {}));
    const known = node.sessions.indexOf(session) + 1;
    const second = await expectOf(play, 'rekeyInTime', 'no new session', () => node.sessions[known], inTimeMs.most);
    const afterMs = second.granted.at - session.granted.at;
    const isInTime = afterMs >= inTimeMs.least;
    check('rekeyInTime', isInTime, `it opened the next session after ${Math.round(afterMs)} ms of ${rekeySeconds} s`);
    const closedAt = closeOf(session);
    check('rekeyClose', closedAt !== undefined, 'no SessionClose REKEY on the old stream');
    const wasOpened = closedAt === undefined || second.granted.at < closedAt;
    check('rekeyClose', wasOpened, 'it closed the old session before the new one was open');
    const hasEnded = session.endedAt !== undefined && session.endedAt <= second.attachedAt;
    check('rekeyClose', hasEnded, 'it did not wait for the end of the old stream');
    await nextSession(play, known, 'rekeyThenHello');
    const payloads = second.said.slice(0, firstPayloads.length).map(({ message }) => message.$case);
    const observed = `the new session begins with ${payloads.join(', ')}`;
    check('rekeyThenHello', payloads.join() === firstPayloads.join(), observed);

    let refused = 0;
    node.plays.refuse = () => {
      refused += 1;
      return refused <= refusalsInARow ? { code: status.UNAVAILABLE } : undefined;
    };
    const beats = saidOf(second, 'heartbeat').length;
    const missing = 'the refused rekey was not retried';
    const third = await expectOf(play, 'rekeyRefused', missing, () => node.sessions[known + 1], 15_000);
    const heard = saidOf(second, 'heartbeat').length - beats;
    check(
      'rekeyRefused',
      heard > 0 && closeOf(second) !== undefined,
      'the old session ended when its rekey was refused',
    );
    check('rekeyRefused', refused > refusalsInARow, `it left the old session after ${refused} refusals`);

    // A service that never ends the old stream holds the agent for two seconds at most.
    node.plays.refuse = undefined;
    node.plays.endDelayMs = 10_000;
    const fourth = await expectOf(play, 'rekeyClose', 'no further session', () => node.sessions[known + 2], 20_000);
    const waitedMs = fourth.attachedAt - (closeOf(third) ?? fourth.attachedAt);
    check('rekeyClose', waitedMs < mostWaitMs, `it waited ${Math.round(waitedMs)} ms for an end that did not come`);
  },
};

/** Heartbeats: their intervals, the commands in their answers, and what it means when answers are missing. */
import { Command } from '../../../src/gen/svc/control/v1/command.js';
import { applied, expectOf, firstSession, nextSession, saidOf } from '../play.js';
import type { Scenario } from '../play.js';
import { makeSnapshot } from '../site.js';

/** A command that only a later service gives. */
const commandOfLater = 77 as Command;
/** The fourth heartbeat is not sent when three are unanswered. */
const mostUnanswered = 4;
const slowerSeconds = 2;

export const heartbeats: Scenario = {
  name: 'heartbeats',
  about: 'commands, an unknown one among them; other intervals; then no answers',
  async play(play) {
    const { node, site, check } = play;
    const session = await firstSession(play);
    await applied(play, makeSnapshot(node, site, {}));
    const asked = saidOf(session, 'configRequest').length;
    node.plays.commands = [commandOfLater, Command.RELOAD_CONFIG, Command.RUN_DIAGNOSTICS];
    const request = await expectOf(play, 'reload', 'no ConfigRequest', () => saidOf(session, 'configRequest')[asked]);
    const named = `a ConfigRequest of version ${request.configVersion}`;
    check('reload', request.configVersion === 0n && request.checksum.length === 0, named);
    const beats = (): readonly number[] =>
      session.said.filter(({ message }) => message.$case === 'heartbeat').map(({ at }) => at);
    const before = beats().length;
    await expectOf(play, 'unknownCommand', 'no heartbeat after an unknown command', () => beats()[before]);
    check('unknownCommand', session.endedAt === undefined, 'the session ended after an unknown command');

    node.plays.grant.heartbeatIntervalSecs = slowerSeconds;
    const told = beats().length;
    // The answer to the next one carries the interval; the one after it may have been on its way.
    await expectOf(play, 'heartbeat', 'no heartbeat', () => beats()[told + 2], 3 * slowerSeconds * 1_000 + 2_000);
    const gapMs = (beats()[told + 2] ?? 0) - (beats()[told + 1] ?? 0);
    check(
      'intervals',
      gapMs > 1_500,
      `heartbeats are ${Math.round(gapMs)} ms apart, and the interval is ${slowerSeconds} s`,
    );
    node.plays.grant.heartbeatIntervalSecs = 1;
    await expectOf(play, 'heartbeat', 'no heartbeat', () => beats()[told + 4], 3 * slowerSeconds * 1_000 + 2_000);

    node.plays.answers = false;
    const answered = beats().length;
    const known = node.sessions.length;
    const missing = 'no new session after three unanswered heartbeats';
    await expectOf(play, 'unanswered', missing, () => (session.endedAt === undefined ? undefined : true), 15_000);
    const unanswered = beats().length - answered;
    const isInTime = unanswered >= 3 && unanswered <= mostUnanswered;
    check('unanswered', isInTime, `it gave up after ${unanswered} heartbeats without an answer`);
    node.plays.answers = true;
    await nextSession(play, known, 'unanswered');
  },
};

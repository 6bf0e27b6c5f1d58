/** Heartbeats: their intervals, the commands in their answers, and the effect of missing answers. */
import { Command } from '../../../src/gen/svc/control/v1/command.js';
import { applied, expectOf, firstSession, nextSession, saidOf } from '../play.js';
import type { Scenario } from '../play.js';
import { makeSnapshot } from '../site.js';

/** A command that only a later service sends. */
const commandOfLater = 77 as Command;
/** The fourth heartbeat is not sent when three are unanswered. */
const mostUnanswered = 4;
const seconds = { granted: 4, told: 2 };
/** Of several heartbeats after the new interval, two must be closer than this: a slow machine delays one, not all. */
const mostGapMs = 3_200;
const looked = 2;

export const heartbeats: Scenario = {
  name: 'heartbeats',
  about: 'commands, an unknown one among them, and another interval; then no answers',
  async play(play) {
    const { node, site, check } = play;
    node.plays.grant.heartbeatIntervalSecs = seconds.granted;
    const session = await firstSession(play);
    await applied(play, makeSnapshot(node, site));
    const asked = saidOf(session, 'configRequest').length;
    node.plays.commands = [commandOfLater, Command.RELOAD_CONFIG, Command.RUN_DIAGNOSTICS];
    node.plays.grant.heartbeatIntervalSecs = seconds.told;
    const request = await expectOf(play, 'reload', 'no ConfigRequest', () => saidOf(session, 'configRequest')[asked]);
    const named = `a ConfigRequest of version ${request.configVersion}`;
    check('reload', request.configVersion === 0n && request.checksum.length === 0, named);

    const beats = (): readonly number[] =>
      session.said.filter(({ message }) => message.$case === 'heartbeat').map(({ at }) => at);
    const told = beats().length;
    await expectOf(play, 'unknownCommand', 'no heartbeat after an unknown command', () => beats()[told]);
    await node.until(() => beats()[told + looked], looked * seconds.told * 1_000);
    const gaps = beats()
      .slice(told)
      .map((at, index, all) => at - (all[index - 1] ?? 0));
    const gapMs = Math.min(...gaps.slice(1));
    const observed = `no two of ${gaps.length} heartbeats are within ${mostGapMs / 1000} s, although the interval is ${seconds.told} s`;
    check('intervals', gapMs < mostGapMs, observed);

    node.plays.answers = false;
    const answered = beats().length;
    const known = node.sessions.length;
    const over = (): true | undefined => (session.endedAt === undefined ? undefined : true);
    await expectOf(play, 'unanswered', 'the session continues without answers', over, 15_000);
    const unanswered = beats().length - answered;
    const isInTime = unanswered >= 3 && unanswered <= mostUnanswered;
    check('unanswered', isInTime, `it gave up after ${unanswered} heartbeats without an answer`);
    node.plays.answers = true;
    await nextSession(play, known, 'unanswered');
  },
};

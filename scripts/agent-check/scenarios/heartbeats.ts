/** Heartbeats and metrics: their intervals, the commands in the answers, and the effect of missing answers. */
import { Command } from '../../../src/gen/svc/control/v1/command.js';
import { applied, expectOf, firstSession, nextSession, saidOf, staysAway, type Play, type Scenario } from '../play.js';
import type { PlayedSession } from '../session.js';
import { makeSnapshot } from '../site.js';

/** A command that only a later service sends. */
const commandOfLater = 77 as Command;
/** The fourth heartbeat is not sent when three are unanswered. */
const mostUnanswered = 4;
const seconds = { granted: 6, told: 2 };
/**
 * Two of several heartbeats must be closer than this: a slow machine delays some, but hardly so that two come closer by
 * chance.
 */
const mostGapMs = 4_000;
const watchedMs = 20_000;
/** The heartbeat that an agent sends after an apply comes within this time. */
const extraMs = 1_500;

export const heartbeats: Scenario = {
  name: 'heartbeats',
  about: 'commands, an unknown one among them, and another interval; then no answers',
  async play(play) {
    const { node, site, check } = play;
    node.plays.grant.heartbeatIntervalSecs = seconds.granted;
    node.plays.grant.metricsIntervalSecs = seconds.granted;
    const session = await firstSession(play);
    await applied(play, makeSnapshot(node, site));
    const asked = saidOf(session, 'configRequest').length;
    node.plays.commands = [commandOfLater, Command.RELOAD_CONFIG, Command.RUN_DIAGNOSTICS];
    node.plays.grant.heartbeatIntervalSecs = seconds.told;
    node.plays.grant.metricsIntervalSecs = seconds.told;
    const reports = saidOf(session, 'applyReport').length;
    const over = (): true | undefined => (session.endedAt === undefined ? undefined : true);
    await node.until(() => saidOf(session, 'configRequest')[asked] ?? over(), 10_000);
    check('unknownCommand', over() === undefined, 'the session ended at a command that the agent does not know');
    const request = await expectOf(play, 'reload', 'no ConfigRequest', () => saidOf(session, 'configRequest')[asked]);
    const named = `a ConfigRequest of version ${request.configVersion}`;
    check('reload', request.configVersion === 0n && request.checksum.length === 0, named);

    await expectOf(play, 'report', 'no report after RELOAD_CONFIG', () => saidOf(session, 'applyReport')[reports]);
    await staysAway(play, () => undefined, extraMs);
    await Promise.all([followInterval(play, session, 'heartbeat'), followInterval(play, session, 'metrics')]);

    node.plays.answers = false;
    const beats = (): number => saidOf(session, 'heartbeat').length;
    const answered = beats();
    const known = node.sessions.length;
    await expectOf(play, 'unanswered', 'the session continues without answers', over, 15_000);
    const unanswered = beats() - answered;
    const isInTime = unanswered >= 3 && unanswered <= mostUnanswered;
    check('unanswered', isInTime, `it gave up after ${unanswered} heartbeats without an answer`);
    node.plays.answers = true;
    await nextSession(play, known, 'unanswered');
  },
};

/** From now on, messages of this kind follow the interval that the service has announced last. */
async function followInterval(play: Play, session: PlayedSession, kind: 'heartbeat' | 'metrics'): Promise<void> {
  const times = (): readonly number[] =>
    session.said.filter(({ message }) => message.$case === kind).map(({ at }) => at);
  const told = times().length;
  const areClose = (): true | undefined =>
    times()
      .slice(told)
      .some((at, index, all) => at - (all[index - 1] ?? Number.NEGATIVE_INFINITY) < mostGapMs)
      ? true
      : undefined;
  const found = await play.node.until(areClose, watchedMs);
  const observed = `no two of ${times().length - told} messages of kind ${kind} are within ${mostGapMs / 1000} s, although the interval is ${seconds.told} s`;
  play.check('intervals', found === true, observed);
}

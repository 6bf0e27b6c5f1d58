/** A change that the service confirms and one that it does not, for agents with the feature `confirm`. */
import { ConfigApplyStatus, type ConfigApplyReport } from '../../../src/gen/svc/control/v1/config.js';
import {
  applied,
  expectOf,
  firstSession,
  liveSession,
  nextSession,
  nextTable,
  saidOf,
  staysAway,
  type Play,
  type Scenario,
} from '../play.js';
import { freePort, makeSnapshot } from '../site.js';

/** Long enough for an agent on a busy machine to open its next session. */
const confirmWithinSecs = 6;
const watchedMs = (confirmWithinSecs + 2) * 1_000;
const backWithinMs = (confirmWithinSecs + 10) * 1_000;

/** The reject of a generation, on any session. */
const rejectOf = ({ node }: Play, generation: bigint): ConfigApplyReport | undefined =>
  node.sessions
    .flatMap((session) => saidOf(session, 'applyReport'))
    .find((report) => report.generation === generation && report.status === ConfigApplyStatus.REJECTED);

export const confirmedChanges: Scenario = {
  name: 'confirmed-changes',
  about: 'a snapshot that is confirmed in time and one that is not; for agents with the feature `confirm`',
  async play(play) {
    const { node, site, check } = play;
    node.plays.grant.heartbeatIntervalSecs = 1;
    const session = await firstSession(play);
    if (saidOf(session, 'hello')[0]?.features.includes('confirm') !== true) return;
    const [first, kept, lost] = [await freePort(), await freePort(), await freePort()];
    await applied(play, makeSnapshot(node, site, { ports: [first] }));
    const confirmed = { ...makeSnapshot(node, site, { ports: [kept] }), confirmWithinSecs };
    await applied(play, confirmed);
    // The agent may open another session before it counts as seen.
    await nextTable(play);
    node.confirm();
    const stays = await staysAway(play, () => rejectOf(play, confirmed.generation), watchedMs);
    check('staysConfirmed', stays, 'it went back from a generation that was confirmed');

    const unconfirmed = { ...makeSnapshot(node, site, { ports: [lost] }), confirmWithinSecs };
    await applied(play, unconfirmed);
    const missing = `no REJECTED report on generation ${unconfirmed.generation}, which nobody confirms`;
    const find = (): ConfigApplyReport | undefined => rejectOf(play, unconfirmed.generation);
    const { errors } = await expectOf(play, 'goesBack', missing, find, backWithinMs);
    const said = errors.map(({ path, message }) => `path "${path}", message "${message}"`).join('; ');
    check('goesBack', said === `path "", message "not confirmed in ${confirmWithinSecs} s"`, `it reports ${said}`);
    const ports = await nextTable(play);
    check(
      'goesBack',
      ports.includes(kept) && !ports.includes(lost),
      `it runs ${ports.join(', ')} and not ${kept} alone`,
    );

    const known = node.sessions.length;
    play.cut(liveSession(play).granted.peer);
    const [request] = saidOf(await nextSession(play, known), 'configRequest');
    const named = request?.configVersion;
    check('namesWhereItWentBack', named === confirmed.generation, `it names ${named}, not ${confirmed.generation}`);
  },
};

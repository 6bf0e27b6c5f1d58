/** A service that reads slowly: it is silent for a while and then catches up. */
import { sleep } from '../../../src/kernel/background.js';
import { applied, expectOf, firstSession, saidOf, type Scenario } from '../play.js';
import { makeSnapshot } from '../site.js';

/** One or two heartbeats wait for their answers meanwhile; after three, the agent would be right to leave. */
const pauseMs = 3_000;

export const slowService: Scenario = {
  name: 'slow-service',
  about: 'the service stops reading for longer than a heartbeat, then catches up',
  async play(play) {
    const { node, site, check } = play;
    node.plays.grant.heartbeatIntervalSecs = 2;
    const session = await firstSession(play);
    await applied(play, makeSnapshot(node, site, {}));
    await expectOf(play, 'heartbeat', 'no heartbeat', () => saidOf(session, 'heartbeat')[0]);
    session.pause();
    const before = saidOf(session, 'heartbeat').length;
    await sleep(pauseMs);
    session.resume();
    await expectOf(play, 'heartbeat', 'no heartbeat from the pause', () => saidOf(session, 'heartbeat')[before + 1]);
    const observed = 'it left a service that read late, with fewer than three answers missing';
    check('unanswered', session.endedAt === undefined && node.sessions.at(-1) === session, observed);
    await applied(play, makeSnapshot(node, site, {}));
  },
};

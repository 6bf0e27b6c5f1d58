/** An agent that is stopped and started again: it says goodbye, and the new process has no configuration. */
import { SessionCloseReason } from '../../../src/gen/svc/control/v1/session.js';
import { CannotGoOn, applied, expectOf, firstSession, saidOf, type Scenario } from '../play.js';
import { freePort, makeSnapshot, relays } from '../site.js';

export const stopping: Scenario = {
  name: 'stopping',
  about: 'SIGTERM, then a new start',
  restarts: true,
  async play(play) {
    const { node, site, check, agent } = play;
    const session = await firstSession(play);
    const port = await freePort();
    await applied(play, makeSnapshot(node, site, { ports: [port] }));
    const stopped = await agent?.stop();
    check('normal', stopped === true, 'the process did not end at SIGTERM');
    const close = saidOf(session, 'close')[0];
    const isNormal = close?.reason === SessionCloseReason.NORMAL;
    check('normal', isNormal, close === undefined ? 'no SessionClose' : `SessionClose with reason ${close.reason}`);

    const processId = saidOf(session, 'hello')[0]?.processId;
    const known = node.sessions.length;
    node.watch.forget();
    await agent?.start();
    const next = await expectOf(play, 'helloFirst', 'no session', () => node.sessions[known], play.patienceMs);
    const missing = 'no ConfigRequest from the new process';
    const request = await expectOf(play, 'request', missing, () => saidOf(next, 'configRequest')[0]);
    const isEmpty = request.configVersion === 0n;
    check('nothingOnDisk', isEmpty, `the new process started with generation ${request.configVersion}`);
    if (!isEmpty) throw new CannotGoOn('it kept its configuration');
    const fresh = saidOf(next, 'hello')[0]?.processId;
    const isOther = processId === undefined || fresh === undefined || !fresh.equals(processId) || fresh.length === 0;
    check('processId', isOther, 'another process has the same process_id');
    const find = () => saidOf(next, 'applyReport')[0];
    await expectOf(play, 'report', 'no report from the new process', find);
    check('relays', await relays(port), `the new process does not relay on port ${port}`);
  },
};

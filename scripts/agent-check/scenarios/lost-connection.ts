/** A connection that is reset under the session: everything keeps running, and the next session reports it. */
import { applied, firstSession, liveSession, nextSession, reportOn } from '../play.js';
import type { Scenario } from '../play.js';
import { unchanged } from '../node.js';
import { freePort, makeSnapshot, openClient, relays } from '../site.js';

export const lostConnection: Scenario = {
  name: 'lost-connection',
  about: 'the connection is reset, twice, while a client is being relayed; later there is nothing new',
  async play(play) {
    const { node, site, check } = play;
    await firstSession(play);
    const port = await freePort();
    const newest = makeSnapshot(node, site, { ports: [port] });
    await applied(play, newest);
    const client = await openClient(port);
    check('relays', (await client?.echoes()) ?? false, `port ${port} does not relay`);
    for (let times = 0; times < 2; times += 1) {
      const known = node.sessions.length;
      play.cut(liveSession(play).granted.peer);
      check('keepsRunning', await relays(port), `port ${port} does not relay while the connection is lost`);
      await nextSession(play, known, 'bareStatus');
      await reportOn(play, newest);
    }
    check('keepsRunning', (await client?.echoes()) ?? false, 'a connection through the agent ended with the session');
    liveSession(play).send(unchanged(0n));
    // The answer to a later snapshot shows that it was handled.
    await reportOn(play, newest);
    check('keepsOnUnchangedZero', (await client?.echoes()) ?? false, 'a connection ended after `unchanged` 0');
    client?.close();
  },
};

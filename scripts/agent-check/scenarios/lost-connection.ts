/** A connection that is reset under the session: what runs goes on, and the next session says what is held. */
import { applied, expectOf, firstSession, nextSession, nextTable, saidOf } from '../play.js';
import type { Scenario } from '../play.js';
import { unchanged } from '../node.js';
import { freePort, makeSnapshot, openClient, relays } from '../site.js';

export const lostConnection: Scenario = {
  name: 'lost-connection',
  about: 'the connection is reset, twice, while a client is being relayed; later nothing new is to be had',
  async play(play) {
    const { node, site, check } = play;
    let session = await firstSession(play);
    const port = await freePort();
    await applied(play, makeSnapshot(node, site, { ports: [port] }));
    const client = await openClient(port);
    check('relays', (await client?.echoes()) ?? false, `port ${port} does not relay`);
    for (let times = 0; times < 2; times += 1) {
      const known = node.sessions.length;
      play.cut(session.granted.peer);
      check('keepsRunning', await relays(port), `port ${port} does not relay while the connection is lost`);
      session = await nextSession(play, known, 'bareStatus');
      await expectOf(play, 'heartbeat', 'no heartbeat', () => saidOf(session, 'heartbeat')[0]);
    }
    check('keepsRunning', (await client?.echoes()) ?? false, 'a connection through the agent ended with the session');
    session.send(unchanged(0n));
    const table = await nextTable(play, session);
    const runs = table.includes(port) && (await relays(port));
    check('keepsOnUnchangedZero', runs, `port ${port} does not run any more`);
    client?.close();
  },
};

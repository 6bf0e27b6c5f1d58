/** A connection that is reset under the session: everything keeps running, and the next session reports it. */
import {
  applied,
  firstSession,
  liveSession,
  nextSession,
  nextTable,
  reportOn,
  staysAway,
  type Scenario,
} from '../play.js';
import { unchanged } from '../node.js';
import { freePort, makeSnapshot, openClient, relays } from '../site.js';

/** How often a new connection through the agent is tried while it is away. */
const lookEveryMs = 100;

export const lostConnection: Scenario = {
  name: 'lost-connection',
  about: 'the connection is reset, twice, while a client is being relayed; later there is nothing new',
  async play(play) {
    const { node, site, check } = play;
    node.plays.grant.heartbeatIntervalSecs = 2;
    await firstSession(play);
    const port = await freePort();
    const newest = makeSnapshot(node, site, { ports: [port] });
    await applied(play, newest);
    const client = await openClient(port);
    check('relays', (await client?.echoes()) ?? false, `port ${port} does not relay`);
    for (let times = 0; times < 2; times += 1) {
      const known = node.sessions.length;
      play.cut(liveSession(play).granted.peer);
      const opens = node.opens.length;
      do check('keepsRunning', await relays(port), `port ${port} does not relay while the connection is lost`);
      while (await staysAway(play, () => node.opens[opens], lookEveryMs));
      await nextSession(play, known, 'bareStatus');
      await reportOn(play, newest);
    }
    check('keepsRunning', (await client?.echoes()) ?? false, 'a connection through the agent ended with the session');
    liveSession(play).send(unchanged(0n));
    // It was handled before the answer to the first of two heartbeats.
    await nextTable(play);
    const table = await nextTable(play);
    check('keepsOnUnchangedZero', table.includes(port), `after \`unchanged\` 0 the table has [${table.join(', ')}]`);
    check('keepsOnUnchangedZero', (await client?.echoes()) ?? false, 'a connection ended after `unchanged` 0');
    client?.close();
  },
};

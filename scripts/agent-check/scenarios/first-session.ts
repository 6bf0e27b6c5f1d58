/** An agent that starts: handshake, hello, configuration, report, heartbeats, metrics, traffic. */
import { expectOf, firstSession, applied, nextTable, saidOf, type Scenario } from '../play.js';
import { freePort, makeSnapshot, relays } from '../site.js';

export const firstSessionScenario: Scenario = {
  name: 'first-session',
  about: 'the agent starts, gets a RAW rule and runs it',
  async play(play) {
    const { node, site, check } = play;
    node.plays.grant.heartbeatIntervalSecs = 2;
    node.plays.grant.metricsIntervalSecs = 1;
    const session = await firstSession(play);
    const hello = saidOf(session, 'hello')[0];
    check('processId', hello?.processId.length === 16, `process_id of ${hello?.processId.length ?? 0} bytes`);
    const port = await freePort();
    await applied(play, makeSnapshot(node, site, { ports: [port] }));
    check('relays', await relays(port), `bytes sent to 127.0.0.1:${port} did not come back from the next hop`);
    await expectOf(play, 'heartbeat', 'no second heartbeat', () => saidOf(session, 'heartbeat')[1]);
    await expectOf(play, 'metrics', 'no second MetricsReport', () => saidOf(session, 'metrics')[1]);
    const table = await nextTable(play);
    check('wholeTable', table.includes(port), `port ${port} runs and is not in the table [${table.join(', ')}]`);
    await applied(play, makeSnapshot(node, site, {}));
    const emptied = await nextTable(play);
    check('wholeTable', emptied.length === 0, `no rule is left, and the table has [${emptied.join(', ')}]`);
    check('newestReplaces', !(await relays(port)), `port ${port} is in no rule any more and still relays`);
  },
};

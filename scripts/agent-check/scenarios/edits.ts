/** Edits of a configuration under traffic: another next hop, a port that is taken, an update in a legacy form. */
import { createServer } from 'node:net';
import { ConfigApplyStatus } from '../../../src/gen/svc/control/v1/config.js';
import { applied, expectOf, firstSession, nextTable, reportOn, saidOf, type Play, type Scenario } from '../play.js';
import { openUpstream } from '../peers.js';
import { freePort, makeSnapshot, openClient, relays, type Client } from '../site.js';

export const edits: Scenario = {
  name: 'edits',
  about: 'while a client is being relayed: another next hop, a snapshot with a port that is taken, a legacy update',
  async play(play) {
    const { node, site, check } = play;
    node.plays.grant.heartbeatIntervalSecs = 2;
    await firstSession(play);
    const [upstream, port] = [await openUpstream(), await freePort()];
    await applied(play, makeSnapshot(node, site, { ports: [port] }));
    const client = await openClient(port);
    try {
      check('relays', (await client?.echoes()) ?? false, `port ${port} does not relay`);
      await applied(play, makeSnapshot(node, { upstream: upstream.address }, { ports: [port] }));
      check('staysOpen', (await client?.echoes()) ?? false, 'a connection was cut by a change of the next hop');
      const joined = await upstream.join(port);
      check('staysOpen', joined !== undefined, 'a new connection does not go to the new next hop');
      await rejectsTakenPort(play, port, client);
      await ignoresLegacy(play, port, client);
    } finally {
      client?.close();
      upstream.close();
    }
  },
};

async function rejectsTakenPort(play: Play, port: number, client: Client | undefined): Promise<void> {
  const { node, site, check } = play;
  const [fresh, taken] = [await freePort(), await freePort()];
  const owner = createServer();
  await new Promise<void>((resolve) => owner.listen(taken, '127.0.0.1', resolve));
  const report = await reportOn(play, makeSnapshot(node, site, { ports: [port, fresh, taken] }));
  const { resourceId, path } = report.errors[0] ?? {};
  const isRejected = report.status === ConfigApplyStatus.REJECTED;
  check('keepsWhatRan', isRejected, `a rule on port ${taken}, which another process has, was reported as applied`);
  check('origin', !isRejected || resourceId === `chain-${taken}`, `the first error is about "${resourceId} ${path}"`);
  check('keepsWhatRan', (await client?.echoes()) ?? false, 'a connection was cut by a snapshot that was rejected');
  const reopened = await openClient(port);
  check('keepsWhatRan', reopened !== undefined, `port ${port} ran before, but not after a reject`);
  reopened?.close();
  check('applyWhole', !(await relays(fresh)), `a part of the rejected snapshot runs: port ${fresh}`);
  await new Promise((resolve) => owner.close(resolve));
}

async function ignoresLegacy(play: Play, port: number, client: Client | undefined): Promise<void> {
  const { node, site, check } = play;
  const session = node.sessions.findLast(({ endedAt }) => endedAt === undefined);
  const other = await freePort();
  const { gateway } = makeSnapshot(node, site, { ports: [other] });
  if (session === undefined || gateway === undefined) return;
  session.send({ $case: 'configUpdate', value: { update: { $case: 'gatewayConfig', value: gateway } } });
  // The answer to a request of its own, sent later, shows that it was handled.
  const beats = saidOf(session, 'heartbeat').length;
  await expectOf(play, 'heartbeat', 'no heartbeat after a legacy update', () => saidOf(session, 'heartbeat')[beats]);
  const table = await nextTable(play);
  check('legacyIgnored', table.join() === String(port), `after a legacy update the table has [${table.join(', ')}]`);
  check('legacyIgnored', !(await relays(other)), `a legacy update was applied: port ${other} runs`);
  check('legacyIgnored', (await client?.echoes()) ?? false, 'a connection was cut by a legacy update');
}

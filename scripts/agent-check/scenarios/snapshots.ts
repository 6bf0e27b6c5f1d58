/** Snapshots that are older, repeated, or many at once. */
import { status } from '@grpc/grpc-js';
import { ConfigApplyStatus } from '../../../src/gen/svc/control/v1/config.js';
import { snapshotUpdate } from '../node.js';
import {
  applied,
  firstSession,
  liveSession,
  nextSession,
  reportOn,
  saidOf,
  staysAway,
  type Scenario,
} from '../play.js';
import { freePort, makeSnapshot, openClient, relays } from '../site.js';

/** An agent that handles a snapshot reports on it within this time. */
const noReportMs = 1_500;
const burst = 20;

export const snapshots: Scenario = {
  name: 'snapshots',
  about: 'an older snapshot, the same one again, a burst of twenty, and one with another listener',
  async play(play) {
    const { node, site, check } = play;
    const session = await firstSession(play);
    const [port, other] = [await freePort(), await freePort()];
    const older = makeSnapshot(node, site, {});
    const newest = makeSnapshot(node, site, { ports: [port] });
    await applied(play, newest);
    const client = await openClient(port);

    const reports = saidOf(session, 'applyReport').length;
    session.send(snapshotUpdate(older));
    const isIgnored = await staysAway(play, () => saidOf(session, 'applyReport')[reports], noReportMs);
    const observed = `it reported on generation ${older.generation} after it had applied ${newest.generation}`;
    check('olderIgnored', isIgnored, observed);
    check('olderIgnored', await relays(port), `it applied generation ${older.generation} after ${newest.generation}`);

    const again = await reportOn(play, newest, 'applyWhole');
    check(
      'applyWhole',
      again.status === ConfigApplyStatus.APPLIED,
      'the snapshot that it runs was rejected when it was sent again',
    );
    check('staysOpen', (await client?.echoes()) ?? false, 'a connection ended when the same snapshot was sent again');
    client?.close();

    const many = Array.from({ length: burst }, () => makeSnapshot(node, site, { ports: [port] }));
    const last = makeSnapshot(node, site, { ports: [port, other] });
    for (const snapshot of many) node.serve(snapshot);
    await applied(play, last);
    check('newestReplaces', await relays(other), `the newest of ${burst + 1} snapshots does not run`);

    // A new session shows which snapshot is the newest, by generation and checksum.
    const known = node.sessions.length;
    liveSession(play).drop(status.UNAVAILABLE);
    await nextSession(play, known, 'bareStatus');
  },
};

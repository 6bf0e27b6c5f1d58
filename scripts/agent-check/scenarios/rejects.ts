/** Snapshots that cannot be applied: no part of them runs, and everything that ran continues. */
import { status } from '@grpc/grpc-js';
import { ConfigApplyStatus } from '../../../src/gen/svc/control/v1/config.js';
import {
  CannotGoOn,
  applied,
  firstSession,
  liveSession,
  nextSession,
  nextTable,
  reportOn,
  type Scenario,
} from '../play.js';
import { freePort, makeSnapshot, relays } from '../site.js';

/** More than a report may name. */
const tooMany = 1_100;

export const rejects: Scenario = {
  name: 'rejects',
  about:
    'an invalid certificate, beside a rule that could run; later 1,100 of them; then an older generation that can run',
  async play(play) {
    const { node, site, check } = play;
    node.plays.grant.heartbeatIntervalSecs = 2;
    await firstSession(play);
    const [port, fresh, bad, later] = [await freePort(), await freePort(), await freePort(), await freePort()];
    await applied(play, makeSnapshot(node, site, { ports: [port] }));

    const between = node.nextGeneration();
    const report = await reportOn(play, makeSnapshot(node, site, { ports: [fresh], broken: [bad] }));
    const isRejected = report.status === ConfigApplyStatus.REJECTED;
    if (!check('keepsWhatRan', isRejected, 'a TLS rule with no certificate was reported as applied')) {
      throw new CannotGoOn('applied');
    }
    const { resourceType, resourceId, path, message } = report.errors[0] ?? {};
    const named = `${resourceType ?? ''} ${resourceId ?? ''} ${path ?? ''}`;
    check(
      'origin',
      resourceType === 'l4_chain' && resourceId === `chain-${bad}`,
      `the first error is about "${named}"`,
    );
    check('origin', (path ?? '').startsWith('hops[1].'), `path "${path ?? ''}" is not a field of hop 1`);
    check('keepsWhatRan', (message ?? '') !== '', 'an error without a message');
    check('keepsWhatRan', await relays(port), `port ${port} ran before, but not after a reject`);
    check('applyWhole', !(await relays(fresh)), `a part of the rejected snapshot runs: port ${fresh}`);
    const table = await nextTable(play);
    check('keepsWhatRan', table.join() === String(port), `the table has [${table.join(', ')}] after a reject`);

    const many = Array.from({ length: tooMany }, (_, index) => 40_000 + index);
    const bounded = await reportOn(play, makeSnapshot(node, site, { broken: many }));
    check('errorsBound', bounded.errors.length <= 1_000, `${bounded.errors.length} errors in one report`);
    const known = node.sessions.length;
    liveSession(play).drop(status.UNAVAILABLE);
    // The next session repeats the reject and names what runs; `watch.ts` checks both.
    await nextSession(play, known, 'bareStatus');

    const lower = makeSnapshot(node, site, { ports: [port, later], generation: between });
    await reportOn(play, lower, 'rejectedDoNotCount');
    check('rejectedDoNotCount', await relays(later), `generation ${between}, above the applied one, does not run`);
  },
};

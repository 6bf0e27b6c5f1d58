/** OpenSession refused, slow, or answered by somebody who does not hold the service's key. */
import { randomBytes } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { applied, expectOf, firstSession, staysAway } from '../play.js';
import type { Scenario } from '../play.js';
import { makeSnapshot } from '../site.js';

/** Several waits of half a second and more that double: more attempts than this in so long are no backoff. */
const windowMs = 2_000;
const attemptsInWindow = 8;
/** Within this a Control stream would come. */
const attachMs = 700;

export const refusals: Scenario = {
  name: 'refusals',
  about: 'OpenSession is refused with one status after the other, then granted, after two seconds',
  async play(play) {
    const { node, check } = play;
    const from = node.opens.length;
    const known = node.sessions.length;
    const codes = [status.UNAUTHENTICATED, status.RESOURCE_EXHAUSTED, status.UNAVAILABLE];
    node.plays.refuse = () => {
      const code = codes[node.opens.length - from];
      return code === undefined ? undefined : { code };
    };
    node.plays.openDelayMs = 2_000;
    await expectOf(play, 'messageOne', 'no OpenSession', () => node.opens[from], play.patienceMs);
    await node.until(() => node.opens[from + attemptsInWindow], windowMs);
    const attempts = node.opens.length - from;
    check('backoff', attempts < attemptsInWindow, `${attempts} attempts in ${windowMs / 1000} s`);
    const missing = 'no further attempt after a refusal';
    await expectOf(play, 'refusalIsNotFinal', missing, () => node.opens[from + codes.length], play.patienceMs);
    await expectOf(
      play,
      'callCosts',
      'no Control stream after an OpenSession that took 2 s',
      () => node.sessions[known],
    );
    await firstSession(play);
    await applied(play, makeSnapshot(node, play.site));
  },
};

export const falseService: Scenario = {
  name: 'false-service',
  about: 'message 2 is forged, then the session_id: neither session may be attached',
  async play(play) {
    const { node, check } = play;
    const from = node.opens.length;
    const known = node.sessions.length;
    node.plays.forge = (answer) => {
      const handshake = Buffer.from(answer.handshake);
      handshake.writeUInt8(handshake.readUInt8(handshake.length - 1) ^ 1, handshake.length - 1);
      return { ...answer, handshake };
    };
    await expectOf(play, 'messageOne', 'no OpenSession', () => node.opens[from], play.patienceMs);
    const unproven = await staysAway(play, () => node.sessions[known], attachMs);
    check('serviceProven', unproven, 'it attached a session whose message 2 does not verify');
    const seen = node.sessions.length;
    node.plays.forge = (answer) => ({ ...answer, sessionId: randomBytes(16) });
    await expectOf(play, 'refusalIsNotFinal', 'no further attempt', () => node.opens[from + 1], play.patienceMs);
    const foreign = await staysAway(play, () => node.sessions[seen], attachMs);
    check('sessionId', foreign, 'it attached a session whose id is not that of the handshake');
    node.plays.forge = undefined;
    await firstSession(play);
    await applied(play, makeSnapshot(node, play.site));
  },
};

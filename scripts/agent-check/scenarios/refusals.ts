/** OpenSession that is refused, slow, or answered by somebody without the service's key. */
import { randomBytes } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { CannotGoOn, applied, expectOf, firstSession, type Play, type Scenario } from '../play.js';
import { makeSnapshot } from '../site.js';

/** Waits of half a second and more double, so more attempts than this within the window show a missing backoff. */
const windowMs = 2_000;
const attemptsInWindow = 8;

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

/**
 * Waits for the agent's reaction to an answer that it must not believe: it tries again, or it attaches the session.
 * @param opens the number of attempts before the one with that answer
 * @returns whether it attached
 */
async function attaches(play: Play, opens: number): Promise<boolean> {
  const { node } = play;
  const known = node.sessions.length;
  await expectOf(play, 'messageOne', 'no OpenSession', () => node.opens[opens], play.patienceMs);
  const missing = 'no further attempt after an answer that does not verify';
  const next = (): unknown => node.opens[opens + 1] ?? node.sessions[known];
  await expectOf(play, 'refusalIsNotFinal', missing, next, play.patienceMs);
  return node.sessions[known] !== undefined;
}

export const falseService: Scenario = {
  name: 'false-service',
  about: 'message 2 is forged, then the session_id: neither session may be attached',
  async play(play) {
    const { node, site, check } = play;
    const from = node.opens.length;
    node.plays.forge = (answer) => {
      const answered = node.opens.length - from;
      if (answered > 2) return answer;
      return answered === 1
        ? { ...answer, handshake: forged(answer.handshake) }
        : { ...answer, sessionId: randomBytes(16) };
    };
    const observed = 'it attached a session whose message 2 does not verify';
    if (!check('serviceProven', !(await attaches(play, from)), observed)) throw new CannotGoOn(observed);
    const foreign = await attaches(play, from + 1);
    check('sessionId', !foreign, 'it attached a session whose id does not match the handshake');
    await firstSession(play);
    await applied(play, makeSnapshot(node, site));
  },
};

/** Changes the last byte. */
function forged(message: Buffer): Buffer {
  const changed = Buffer.from(message);
  changed.writeUInt8(changed.readUInt8(changed.length - 1) ^ 1, changed.length - 1);
  return changed;
}

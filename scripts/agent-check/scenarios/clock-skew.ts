/** Clocks that differ: the agent adopts the service's time from the refusal, once, and keeps it. */
import { status } from '@grpc/grpc-js';
import { limits } from '../../../src/kernel/limits.js';
import type { OpenAttempt } from '../node.js';
import {
  CannotGoOn,
  applied,
  expectOf,
  firstSession,
  liveSession,
  nextSession,
  type Play,
  type Scenario,
} from '../play.js';
import { makeSnapshot } from '../site.js';

const hourMs = 3_600_000;
/** "At once", on a busy machine. */
const atOnceMs = 3_000;
/** How long the service refuses every offer because of its clock; the agent may try twice per wait. */
const stubbornMs = 3_000;
const stubbornAttempts = 12;

const isSkewed = ({ offer }: OpenAttempt, offsetMs: number): boolean =>
  Math.abs(Number(offer?.timestampMs ?? 0n) - (Date.now() + offsetMs)) > limits.agent.clockSkewMs;

async function accepted(play: Play, from: number): Promise<void> {
  const { node, check } = play;
  const first = await expectOf(play, 'messageOne', 'no OpenSession', () => node.opens[from], play.patienceMs);
  const second = await expectOf(play, 'skewOffset', 'no second OpenSession', () => node.opens[from + 1]);
  const observed = `the offer after the refusal is still ${Math.round((Date.now() - Number(second.offer?.timestampMs ?? 0n)) / 1000)} s old`;
  if (!check('skewOffset', second.granted, observed)) throw new CannotGoOn(observed);
  const waitedMs = second.at - first.at;
  check('skewOffset', waitedMs < atOnceMs, `it tried again after ${Math.round(waitedMs)} ms`);
}

export const clockSkew: Scenario = {
  name: 'clock-skew',
  about: "the service's clock is an hour ahead, later two hours; then every offer is refused for its clock",
  async play(play) {
    const { node, check } = play;
    const from = node.opens.length;
    node.plays.clockOffsetMs = hourMs;
    await accepted(play, from);
    await firstSession(play);
    // Without an answer, an agent would wait longer each time.
    await applied(play, makeSnapshot(node, play.site));
    const known = node.sessions.length;
    play.cut(liveSession(play).granted.peer);
    await nextSession(play, known);
    const offer = node.opens.findLast(({ granted }) => granted);
    const isKept = offer !== undefined && !isSkewed(offer, hourMs) && node.opens.length === from + 3;
    check('skewOffset', isKept, 'the next connection started without the offset');
    node.plays.clockOffsetMs = 2 * hourMs;
    node.plays.refuse = () => ({
      code: status.FAILED_PRECONDITION,
      trailer: { 'server-time-ms': String(Date.now() + node.plays.clockOffsetMs) },
    });
    const before = node.opens.length;
    await applied(play, makeSnapshot(node, play.site));
    play.cut(liveSession(play).granted.peer);
    await node.until(() => node.opens[before + stubbornAttempts], stubbornMs);
    const attempts = node.opens.length - before;
    check('backoff', attempts < stubbornAttempts, `${attempts} offers in ${stubbornMs / 1000} s while all are refused`);
  },
};

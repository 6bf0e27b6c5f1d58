/** Frames that no service sends: forged, repeated, out of order, truncated. None of them may have an effect. */
import { ServicePayload, type SecureFrame } from '../../../src/gen/svc/control/v1/session.js';
import { snapshotUpdate } from '../node.js';
import { CannotGoOn, applied, firstSession, nextSession, saidOf, type Play, type Scenario } from '../play.js';
import type { PlayedSession } from '../session.js';
import { freePort, makeSnapshot } from '../site.js';

interface BadFrame {
  readonly what: string;
  /** @param plaintext of a snapshot that the agent would apply */
  send(session: PlayedSession, plaintext: Buffer): void;
}

const forged = ({ ciphertext, ...frame }: SecureFrame): SecureFrame => {
  const changed = Buffer.from(ciphertext);
  changed.writeUInt8(changed.readUInt8(0) ^ 1, 0);
  return { ...frame, ciphertext: changed };
};

const badFrames: readonly BadFrame[] = [
  { what: 'a tag that does not verify', send: (session, plaintext) => void session.sendPlaintext(plaintext, forged) },
  {
    what: 'a sequence that leaves one out',
    send: (session, plaintext) =>
      void session.sendPlaintext(plaintext, (frame) => ({ ...frame, sequence: frame.sequence + 1n })),
  },
  {
    what: 'a frame that came before',
    send(session, plaintext) {
      // An empty payload, twice; nothing may be accepted after the repeat.
      session.sendFrame(session.sendPlaintext(Buffer.of(0)));
      session.sendPlaintext(plaintext);
    },
  },
  {
    what: 'the fragment byte 0x02',
    send: (session, plaintext) => void session.sendPlaintext(Buffer.concat([Buffer.of(2), plaintext.subarray(1)])),
  },
  {
    what: 'a ciphertext too short for a tag',
    send(session, plaintext) {
      session.sendPlaintext(plaintext, (frame) => ({ ...frame, ciphertext: Buffer.alloc(5) }));
    },
  },
];

async function refuses(play: Play, session: PlayedSession, { what, send }: BadFrame): Promise<PlayedSession> {
  const { node, site, check } = play;
  await applied(play, makeSnapshot(node, site));
  const snapshot = makeSnapshot(node, site, { ports: [await freePort()] });
  const payload = ServicePayload.encode({ payload: snapshotUpdate(snapshot) }).finish();
  const known = node.sessions.length;
  send(session, Buffer.concat([Buffer.of(0), payload]));
  const ended = await node.until(() => (session.endedAt === undefined ? undefined : true), 5_000);
  const reports = saidOf(session, 'applyReport').some(({ generation }) => generation === snapshot.generation);
  check('badFrame', !reports, `it applied a snapshot after ${what}`);
  if (!check('badFrame', ended !== undefined, `the session continues after ${what}`)) throw new CannotGoOn(what);
  return nextSession(play, known, 'badFrame');
}

export const badFramesScenario: Scenario = {
  name: 'bad-frames',
  about: badFrames.map(({ what }) => what).join(', '),
  async play(play) {
    let session = await firstSession(play);
    for (const frame of badFrames) session = await refuses(play, session, frame);
  },
};

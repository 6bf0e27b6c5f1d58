/** Messages in fragments of the largest and the smallest size, sent slowly, and a message of 16 MiB. */
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { ServicePayload } from '../../../src/gen/svc/control/v1/session.js';
import { limits } from '../../../src/kernel/limits.js';
import { snapshotUpdate } from '../node.js';
import { expectOf, firstSession, saidOf, type Play, type Scenario } from '../play.js';
import type { PlayedSession } from '../session.js';
import { freePort, makeSnapshot } from '../site.js';

const padding = 2_000;
const kibibyte = 1_024;

/** A payload with a snapshot, padded to a size with a field that agents do not know. */
async function padded(play: Play, bytes: number): Promise<{ readonly generation: bigint; readonly payload: Buffer }> {
  const snapshot = makeSnapshot(play.node, play.site, { ports: [await freePort()] });
  play.node.watch.sent(snapshot);
  const encoded = ServicePayload.encode({ payload: snapshotUpdate(snapshot) }).finish();
  // The tag and length of the padding take some bytes too.
  const filler = new BinaryWriter()
    .tag(padding, 2)
    .bytes(Buffer.alloc(Math.max(0, bytes - encoded.length - 8)))
    .finish();
  return { generation: snapshot.generation, payload: Buffer.concat([encoded, filler]) };
}

async function arrives(play: Play, session: PlayedSession, generation: bigint, what: string): Promise<void> {
  const find = () => saidOf(session, 'applyReport').find((report) => report.generation === generation);
  await expectOf(play, 'joined', `no report on a snapshot ${what}`, find, 60_000);
}

export const fragments: Scenario = {
  name: 'fragments',
  about: 'snapshots in fragments of 64 KiB and of 16 KiB, one of nearly 16 MiB',
  async play(play) {
    const session = await firstSession(play);
    const large = await padded(play, 200 * kibibyte);
    session.sendBytes(large.payload);
    await arrives(play, session, large.generation, 'in four fragments');
    const small = await padded(play, 100 * kibibyte);
    session.sendBytes(small.payload, limits.agent.fragmentMinBytes);
    await arrives(play, session, small.generation, 'in fragments of 16 KiB');
    const whole = await padded(play, limits.agent.joinedOutBytes);
    session.sendBytes(whole.payload);
    await arrives(play, session, whole.generation, 'of 16 MiB');
    play.check('joined', session.endedAt === undefined, 'the session ended');
  },
};

/** A later service: payloads, fields and values that this release of the protocol does not have. */
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { HeartbeatResponse } from '../../../src/gen/svc/control/v1/heartbeat.js';
import { ConfigApplyStatus, RuntimeConfigSnapshot } from '../../../src/gen/svc/control/v1/config.js';
import { applied, expectOf, firstSession, saidOf, type Scenario } from '../play.js';
import { freePort, makeSnapshot } from '../site.js';

/** Numbers that no message uses. */
const unknownNumber = 1_000;
const unknownText = new BinaryWriter().tag(unknownNumber, 2).bytes(Buffer.from('from a later service')).finish();
const unknownCount = new BinaryWriter()
  .tag(unknownNumber + 1, 0)
  .uint64(7n)
  .finish();
const unknown = Buffer.concat([unknownText, unknownCount]);

/** A message as a field of another message, with unknown fields in it. */
const nested = (number: number, bytes: Uint8Array): Buffer =>
  Buffer.from(
    new BinaryWriter()
      .tag(number, 2)
      .bytes(Buffer.concat([bytes, unknown]))
      .finish(),
  );

/** Field numbers of `ServicePayload` and `ConfigUpdate`. */
const heartbeatResponse = 1;
const configUpdate = 2;
const snapshotOfUpdate = 1;

export const laterService: Scenario = {
  name: 'later-service',
  about: 'unknown payloads, an empty one, unknown fields at every depth',
  async play(play) {
    const { node, site, check } = play;
    const session = await firstSession(play);
    session.sendBytes(unknown);
    session.sendBytes(Buffer.alloc(0));
    session.sendBytes(Buffer.concat([nested(configUpdate, Buffer.alloc(0)), unknown]));
    // Later messages are still handled, on the same session.
    await applied(play, makeSnapshot(node, site));
    const goesOn = (): boolean => session.endedAt === undefined && session === node.sessions.at(-1);
    check('unknownPayload', goesOn(), 'the session ended after payloads that the agent does not know');

    const response = HeartbeatResponse.encode({
      ok: true,
      ackSequence: 0n,
      commands: [],
      heartbeatIntervalSecs: 10,
      metricsIntervalSecs: 10,
    }).finish();
    session.sendBytes(Buffer.concat([nested(heartbeatResponse, response), unknown]));
    const snapshot = makeSnapshot(node, site, { ports: [await freePort()] });
    node.watch.sent(snapshot);
    const encoded = RuntimeConfigSnapshot.encode(snapshot).finish();
    session.sendBytes(Buffer.concat([nested(configUpdate, nested(snapshotOfUpdate, encoded)), unknown]));
    const find = () => saidOf(session, 'applyReport').find(({ generation }) => generation === snapshot.generation);
    const report = await expectOf(play, 'unknownFields', 'no report on a snapshot with unknown fields', find);
    check(
      'unknownFields',
      report.status === ConfigApplyStatus.APPLIED,
      'a snapshot was rejected for fields of a later service',
    );
    check('unknownFields', goesOn(), 'the session ended after fields that the agent does not know');
  },
};

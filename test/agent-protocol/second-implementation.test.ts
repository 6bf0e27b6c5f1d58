/**
 * One whole session of an agent that shares no cryptography and no framing code with the service: the handshake uses
 * @noble alone, the frames the generated code.
 */
import { status } from '@grpc/grpc-js';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { hkdf } from '@noble/hashes/hkdf.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import {
  AgentPayload,
  OpenSessionRequest,
  OpenSessionResponse,
  SecureFrame,
  ServicePayload,
  SessionGrant,
  SessionOffer,
} from '../../src/gen/svc/control/v1/session.js';
import { snapshotPush, startAgentFixture } from '../support/agent-fixture.js';
import type { AgentFixture } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { oracleDecrypt, oracleEncrypt, oracleInitiate } from '../support/noise-oracle.js';
import { configRequestOf, createRawAgent, heartbeatOf, helloOf } from '../support/raw-agent.js';
import type { RawAgent, Sayable } from '../support/raw-agent.js';

let fixture: AgentFixture;
let wire: RawAgent;
let psk: string;

beforeEach(async () => {
  fixture = await startAgentFixture();
  psk = await fixture.issue('node-1');
  wire = createRawAgent(fixture, 'node-1', psk);
});
afterEach(async () => {
  wire.disconnect();
  await fixture.close();
});

test('an independent implementation completes a session: hello, a large snapshot, a heartbeat, close', async () => {
  const bundle = Buffer.from(psk.slice('svcpsk1_'.length), 'base64url');
  const secret = bundle.subarray(0, 32);
  const derive = (info: string): Uint8Array =>
    hkdf(sha256, secret, utf8ToBytes('svc-control-v1'), utf8ToBytes(info), 32);
  const initiated = oracleInitiate(
    {
      prologue: utf8ToBytes('svc-control-v1\0node-1'),
      psk: derive('noise-psk'),
      staticPrivate: derive('node-static'),
      remoteStatic: bundle.subarray(32),
      ephemeralPrivate: randomBytes(32),
    },
    SessionOffer.encode({ timestampMs: BigInt(Date.now()), nonce: randomBytes(16), agentVersion: 'oracle' }).finish(),
  );
  const answer = await wire.unary(
    '/svc.control.v1.SecureAgentService/OpenSession',
    Buffer.from(
      OpenSessionRequest.encode({
        nodeId: 'node-1',
        protocolVersion: 1,
        handshake: Buffer.from(initiated.message),
      }).finish(),
    ),
  );
  if (!Buffer.isBuffer(answer)) throw new Error(answer.details);
  const response = OpenSessionResponse.decode(answer);
  const keys = initiated.finish(response.handshake);
  expect(response.sessionId).toEqual(Buffer.from(keys.hash.subarray(0, 16)));
  expect(SessionGrant.decode(keys.payload).rekeyAfterSecs).toBe(21_600);

  fixture.answer = () => ({ kind: 'snapshot', push: snapshotPush(5, 300_000) });
  const call = wire.bare();
  const heard: ServicePayload[] = [];
  let received = 0n;
  let joined = Buffer.alloc(0);
  let fragments = 0;
  call.on('data', (bytes: Buffer) => {
    const frame = SecureFrame.decode(bytes);
    expect(frame.sessionId.length).toBe(0);
    expect(frame.sequence).toBe(received);
    const plaintext = oracleDecrypt(keys.responderToInitiator, received, frame.ciphertext);
    received += 1n;
    fragments += 1;
    joined = Buffer.concat([joined, plaintext.subarray(1)]);
    if (plaintext[0] === 1) return;
    heard.push(ServicePayload.decode(joined));
    joined = Buffer.alloc(0);
  });
  const ended = new Promise<number>((resolve) => call.on('status', ({ code }) => resolve(code)));
  let sent = 0n;
  const say = (payload: Sayable): void => {
    const plaintext = Buffer.concat([Buffer.of(0), AgentPayload.encode({ payload }).finish()]);
    const ciphertext = Buffer.from(oracleEncrypt(keys.initiatorToResponder, sent, plaintext));
    const sessionId = sent === 0n ? response.sessionId : Buffer.alloc(0);
    call.write(Buffer.from(SecureFrame.encode({ sessionId, sequence: sent, ciphertext }).finish()));
    sent += 1n;
  };
  say(helloOf({ nodeId: 'node-1' }));
  say(configRequestOf(0n));
  await eventually(() => heard.length).toBe(1);
  expect(heard[0]?.payload).toMatchObject({
    $case: 'configUpdate',
    value: { update: { $case: 'snapshot', value: { generation: 5n } } },
  });
  expect(fragments).toBe(5);
  say(heartbeatOf(8));
  await eventually(() => heard.length).toBe(2);
  expect(heard[1]?.payload).toMatchObject({ $case: 'heartbeatResponse', value: { ackSequence: 8n } });
  say({ $case: 'close', value: { reason: 1, message: '', retryAfterMs: 0 } });
  expect(await ended).toBe(status.OK);
});

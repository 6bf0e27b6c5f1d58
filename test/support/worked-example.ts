/**
 * The session that `docs/agent-protocol.md#a-worked-example` shows byte for byte, from fixed keys. Computed by the second
 * implementation of the handshake; a test compares it with the first one and with the document.
 */
import { x25519 } from '@noble/curves/ed25519.js';
import { hkdf } from '@noble/hashes/hkdf.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import {
  AgentPayload,
  OpenSessionRequest,
  SecureFrame,
  ServicePayload,
  SessionGrant,
  SessionOffer,
} from '../../src/gen/svc/control/v1/session.js';
import { oracleEncrypt, oracleInitiate, oracleRespond } from './noise-oracle.js';
import { helloOf } from './raw-agent.js';

export const exampleNode = '5f0c2d3e-8a41-4b7e-9d56-0123456789ab';

interface WorkedExample {
  /** The lines of the document, in its order. */
  readonly rows: readonly (readonly [name: string, value: string])[];
  readonly secret: Uint8Array;
  readonly servicePrivate: Uint8Array;
  readonly agentEphemeral: Uint8Array;
  readonly serviceEphemeral: Uint8Array;
  readonly offer: Uint8Array;
  readonly grant: Uint8Array;
}

const counting = (start: number): Uint8Array => Uint8Array.from({ length: 32 }, (_, index) => start + index);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

export function workedExample(): WorkedExample {
  const secret = counting(0x00);
  const servicePrivate = counting(0x20);
  const agentEphemeral = counting(0x40);
  const serviceEphemeral = counting(0x60);
  const servicePublic = x25519.getPublicKey(servicePrivate);
  const derive = (info: string): Uint8Array =>
    hkdf(sha256, secret, utf8ToBytes('svc-control-v1'), utf8ToBytes(info), 32);
  const nodePrivate = derive('node-static');
  const nodePublic = x25519.getPublicKey(nodePrivate);
  const psk = derive('noise-psk');
  const prologue = utf8ToBytes(`svc-control-v1\0${exampleNode}`);
  const offer = SessionOffer.encode({
    timestampMs: 1_750_000_000_000n,
    nonce: Buffer.alloc(16, 0xaa),
    agentVersion: 'example/1',
  }).finish();
  const grant = SessionGrant.encode({
    rekeyAfterSecs: 21_600,
    heartbeatIntervalSecs: 10,
    metricsIntervalSecs: 60,
    serverTimeMs: 1_750_000_000_123n,
  }).finish();
  const initiated = oracleInitiate(
    { prologue, psk, staticPrivate: nodePrivate, remoteStatic: servicePublic, ephemeralPrivate: agentEphemeral },
    offer,
  );
  const responded = oracleRespond(
    { prologue, psk, staticPrivate: servicePrivate, remoteStatic: nodePublic, ephemeralPrivate: serviceEphemeral },
    initiated.message,
  ).finish(grant);
  const keys = initiated.finish(responded.message);
  const sessionId = Buffer.from(keys.hash.subarray(0, 16));
  const request = OpenSessionRequest.encode({
    nodeId: exampleNode,
    protocolVersion: 1,
    handshake: Buffer.from(initiated.message),
  }).finish();

  const hello = AgentPayload.encode({ payload: helloOf({ nodeId: exampleNode, agentVersion: 'example/1' }) }).finish();
  const helloPlain = Buffer.concat([Buffer.of(0), hello]);
  const helloCipher = Buffer.from(oracleEncrypt(keys.initiatorToResponder, 0n, helloPlain));
  const helloFrame = SecureFrame.encode({ sessionId, sequence: 0n, ciphertext: helloCipher }).finish();
  const question = AgentPayload.encode({
    payload: { $case: 'configRequest', value: { nodeId: '', configVersion: 0n, checksum: Buffer.alloc(0) } },
  }).finish();
  const questionPlain = Buffer.concat([Buffer.of(0), question]);
  const questionCipher = Buffer.from(oracleEncrypt(keys.initiatorToResponder, 1n, questionPlain));
  const questionFrame = SecureFrame.encode({
    sessionId: Buffer.alloc(0),
    sequence: 1n,
    ciphertext: questionCipher,
  }).finish();
  const unchanged = ServicePayload.encode({
    payload: { $case: 'configUpdate', value: { update: { $case: 'unchanged', value: { generation: 7n } } } },
  }).finish();
  const answerPlain = Buffer.concat([Buffer.of(0), unchanged]);
  const answerCipher = Buffer.from(oracleEncrypt(keys.responderToInitiator, 0n, answerPlain));
  const answerFrame = SecureFrame.encode({
    sessionId: Buffer.alloc(0),
    sequence: 0n,
    ciphertext: answerCipher,
  }).finish();

  return {
    secret,
    servicePrivate,
    agentEphemeral,
    serviceEphemeral,
    offer,
    grant,
    rows: [
      ['node_id', exampleNode],
      ['secret', hex(secret)],
      ['service static private', hex(servicePrivate)],
      ['service static public', hex(servicePublic)],
      ['control PSK', `svcpsk1_${Buffer.concat([secret, servicePublic]).toString('base64url')}`],
      ['node_static_private', hex(nodePrivate)],
      ['node_static_public', hex(nodePublic)],
      ['psk', hex(psk)],
      ['fingerprint', `SHA256:${Buffer.from(sha256(nodePublic)).toString('base64url')}`],
      ['prologue', hex(prologue)],
      ['agent ephemeral private', hex(agentEphemeral)],
      ['SessionOffer', hex(offer)],
      ['message 1', hex(initiated.message)],
      ['OpenSessionRequest', hex(request)],
      ['service ephemeral private', hex(serviceEphemeral)],
      ['SessionGrant', hex(grant)],
      ['message 2', hex(responded.message)],
      ['handshake hash', hex(keys.hash)],
      ['session_id', hex(sessionId)],
      ['key agent to service', hex(keys.initiatorToResponder)],
      ['key service to agent', hex(keys.responderToInitiator)],
      ['AgentPayload hello', hex(hello)],
      ['its plaintext', hex(helloPlain)],
      ['its ciphertext, sequence 0', hex(helloCipher)],
      ['its SecureFrame', hex(helloFrame)],
      ['AgentPayload ConfigRequest 0', hex(question)],
      ['its ciphertext, sequence 1', hex(questionCipher)],
      ['its SecureFrame', hex(questionFrame)],
      ['ServicePayload unchanged 7', hex(unchanged)],
      ['its ciphertext, sequence 0', hex(answerCipher)],
      ['its SecureFrame', hex(answerFrame)],
    ],
  };
}

/** The rows as the document prints them. */
export function exampleText(example: WorkedExample): string {
  const width = Math.max(...example.rows.map(([name]) => name.length)) + 2;
  return example.rows.map(([name, value]) => `${name.padEnd(width)}${value}`).join('\n');
}

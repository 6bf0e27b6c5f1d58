/**
 * The handshake and frames of a session with fixed keys, byte for byte, and inputs that an agent must refuse: files in
 * `examples/fixtures/` for authors of agents. A test compares them with a second implementation.
 */
import { agentKeysFrom, deriveNodeSecrets, encodeControlPsk } from '../../src/channel/noise/control-psk.js';
import { maxFragmentBytes, splitPayload } from '../../src/channel/noise/fragmenter.js';
import {
  controlPrologue,
  initiate,
  respond,
  sessionIdOf,
  type NoiseSession,
} from '../../src/channel/noise/handshake.js';
import { Command } from '../../src/gen/svc/control/v1/command.js';
import {
  SessionCloseReason,
  ServicePayload,
  SessionGrant,
  SessionOffer,
} from '../../src/gen/svc/control/v1/session.js';
import { x25519PairOf } from '../../src/kernel/crypto/crypto.js';
import { limits } from '../../src/kernel/limits.js';
import { encodeFrame } from '../../src/transport/agent/frames.js';
import { snapshotFixtures } from './snapshots.js';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const counting = (start: number): Buffer =>
  Buffer.from(Array.from({ length: 32 }, (_, index) => (start + index) & 0xff));

export const vectorNode = '5f0c2d3e-8a41-4b7e-9d56-0123456789ab';

function must<T>(
  result: { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown },
): T {
  if (!result.ok) throw new Error(`a fixture cannot be made: ${String(result.error)}`);
  return result.value;
}

interface Parties {
  readonly nodeId: string;
  /** The first byte of each key; the others count up from it. */
  readonly seed: number;
}

/** One handshake with all its inputs. */
function handshakeOf({ nodeId, seed }: Parties) {
  const secret = counting(seed);
  const service = x25519PairOf(counting(seed + 0x20));
  const agentEphemeral = counting(seed + 0x40);
  const serviceEphemeral = counting(seed + 0x60);
  const controlPsk = encodeControlPsk({ secret, servicePublic: service.publicKey });
  const keys = must(agentKeysFrom(controlPsk));
  const prologue = controlPrologue(nodeId);
  const common = { prologue, psk: keys.psk };
  const offer = { timestampMs: 1_750_000_000_000n, nonce: Buffer.alloc(16, 0xaa), agentVersion: 'example/1' };
  const grant = {
    rekeyAfterSecs: 21_600,
    heartbeatIntervalSecs: 10,
    metricsIntervalSecs: 60,
    serverTimeMs: 1_750_000_000_123n,
  };
  const agentParty = { ...common, localStatic: keys.nodeStatic, remoteStatic: service.publicKey };
  const serviceParty = { ...common, localStatic: service, remoteStatic: keys.nodeStatic.publicKey };
  const initiated = must(
    initiate({ ...agentParty, ephemeral: x25519PairOf(agentEphemeral) }, SessionOffer.encode(offer).finish()),
  );
  const responded = must(respond({ ...serviceParty, ephemeral: x25519PairOf(serviceEphemeral) }, initiated.message));
  const served = must(responded.finish(SessionGrant.encode(grant).finish()));
  const opened = must(initiated.finish(served.message));
  const vector = {
    node_id: nodeId,
    control_psk: controlPsk,
    node_static_private: hex(deriveNodeSecrets(secret).nodeStaticPrivate),
    node_static_public: hex(keys.nodeStatic.publicKey),
    psk: hex(keys.psk),
    service_static_public: hex(service.publicKey),
    fingerprint: keys.fingerprint,
    prologue: hex(prologue),
    agent_ephemeral_private: hex(agentEphemeral),
    session_offer: hex(SessionOffer.encode(offer).finish()),
    message_1: hex(initiated.message),
    message_2: hex(served.message),
    session_grant: hex(opened.payload),
    handshake_hash: hex(opened.handshakeHash),
    session_id: hex(sessionIdOf(opened.handshakeHash)),
  };
  return { vector, served };
}

export function handshakeVectors(): object {
  const { vector } = handshakeOf({ nodeId: vectorNode, seed: 0 });
  const other = handshakeOf({ nodeId: vectorNode, seed: 7 }).vector;
  const tampered = Buffer.from(vector.message_2, 'hex');
  tampered.writeUInt8(tampered.readUInt8(tampered.length - 1) ^ 1, tampered.length - 1);
  return {
    about:
      'OpenSession (docs/agent-protocol.md#opensession). Bytes are hexadecimal. The first handshake is that of the worked example. ' +
      'Made by npm run generate.',
    protocol_name: 'Noise_KKpsk0_25519_ChaChaPoly_SHA256',
    handshakes: [
      vector,
      handshakeOf({ nodeId: 'node-1', seed: 3 }).vector,
      handshakeOf({ nodeId: 'knoten-\u00fc', seed: 5 }).vector,
    ],
    refused_answers: [
      { why: 'the tag of message 2 does not verify', session_id: vector.session_id, message_2: hex(tampered) },
      { why: 'message 2 of another service', session_id: vector.session_id, message_2: other.message_2 },
      { why: 'message 2 without its tag', session_id: vector.session_id, message_2: vector.message_2.slice(0, -32) },
      { why: 'message 2 is empty', session_id: vector.session_id, message_2: '' },
      { why: 'session_id is not of this handshake', session_id: other.session_id, message_2: vector.message_2 },
    ],
    refused_psks: [
      { why: 'no prefix', control_psk: vector.control_psk.slice('svcpsk1_'.length) },
      { why: 'another version', control_psk: vector.control_psk.replace('svcpsk1_', 'svcpsk2_') },
      { why: 'a character is missing', control_psk: vector.control_psk.slice(0, -1) },
      { why: 'padded', control_psk: `${vector.control_psk}==` },
      { why: 'unused bits of the last character are set', control_psk: `${vector.control_psk.slice(0, -1)}B` },
    ],
  };
}

/** Messages from the service, in the order they are sent. */
function serviceMessages(): readonly { readonly what: string; readonly payload: Uint8Array }[] {
  const place = { nodeId: vectorNode, generation: 7n, address: '0.0.0.0', port: 443 };
  const names = ['tcp-raw', 'tcp-shared'];
  const payloadOf = (payload: NonNullable<ServicePayload['payload']>): Uint8Array =>
    ServicePayload.encode({ payload }).finish();
  const snapshots = snapshotFixtures
    .filter(({ name }) => names.includes(name))
    .map(({ name, snapshot }) => ({
      what: `ConfigUpdate with a snapshot (${name})`,
      payload: payloadOf({
        $case: 'configUpdate',
        value: { update: { $case: 'snapshot', value: snapshot(place) } },
      }),
    }));
  return [
    ...snapshots,
    {
      what: 'ConfigUpdate unchanged',
      payload: payloadOf({
        $case: 'configUpdate',
        value: { update: { $case: 'unchanged', value: { generation: 7n } } },
      }),
    },
    {
      what: 'HeartbeatResponse with a command',
      payload: payloadOf({
        $case: 'heartbeatResponse',
        value: {
          ok: true,
          ackSequence: 3n,
          commands: [Command.RELOAD_CONFIG],
          heartbeatIntervalSecs: 10,
          metricsIntervalSecs: 60,
        },
      }),
    },
    { what: 'a payload of a later service, to be ignored', payload: Buffer.from('c23e0568656c6c6f', 'hex') },
    {
      what: 'SessionClose',
      payload: payloadOf({
        $case: 'close',
        value: { reason: SessionCloseReason.DRAINING, message: 'restarting', retryAfterMs: 2_000 },
      }),
    },
  ];
}

/** @returns the SecureFrame of a plaintext, encoded */
function frameOf(session: NoiseSession, plaintext: Uint8Array): Uint8Array {
  const sequence = session.send.nextSequence;
  return encodeFrame(sequence, must(session.send.encrypt(sequence, plaintext)));
}

export function frameVectors(): object {
  const { served } = handshakeOf({ nodeId: vectorNode, seed: 0 });
  const frames = serviceMessages().flatMap(({ what, payload }) =>
    splitPayload(payload).map((plaintext) => ({
      what,
      payload: hex(payload),
      secure_frame: hex(frameOf(served, plaintext)),
    })),
  );
  return {
    about:
      'What the service sends on the first session of handshake.json, from its first frame on (docs/agent-protocol.md#control): encoded ' +
      'SecureFrames, and the ServicePayload that comes out. Each entry of "refused" is the first frame of a fresh session of the same ' +
      'keys; the agent takes nothing of it and drops the connection. Bytes are hexadecimal. Made by npm run generate.',
    frames,
    fragment_sizes: { largest: maxFragmentBytes, smallest_but_the_last: limits.agent.fragmentMinBytes },
    refused: refusedFrames(),
  };
}

function refusedFrames(): readonly object[] {
  const payload = Buffer.concat([Buffer.of(0), Buffer.from('120412020807', 'hex')]);
  const fresh = (): NoiseSession => handshakeOf({ nodeId: vectorNode, seed: 0 }).served;
  const good = Buffer.from(frameOf(fresh(), payload));
  const ciphertext = must(fresh().send.encrypt(0, payload));
  const tampered = Buffer.from(good);
  tampered.writeUInt8(tampered.readUInt8(tampered.length - 1) ^ 1, tampered.length - 1);
  const wrongByte = Buffer.concat([Buffer.of(2), payload.subarray(1)]);
  return [
    { why: 'the tag does not verify', secure_frame: hex(tampered) },
    { why: 'sequence 1 is stated, and the frame is the first', secure_frame: hex(encodeFrame(1, ciphertext)) },
    {
      why: 'encrypted for the other direction',
      secure_frame: hex(encodeFrame(0, must(fresh().receive.encrypt(0, payload)))),
    },
    { why: 'the ciphertext is shorter than a tag', secure_frame: hex(encodeFrame(0, ciphertext.subarray(0, 5))) },
    { why: 'the ciphertext is empty', secure_frame: hex(encodeFrame(0, Buffer.alloc(0))) },
    { why: 'no fragment byte', secure_frame: hex(frameOf(fresh(), Buffer.alloc(0))) },
    { why: 'the fragment byte is 0x02', secure_frame: hex(frameOf(fresh(), wrongByte)) },
  ];
}

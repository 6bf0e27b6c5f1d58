/**
 * The fixtures for authors of agents: their bytes come out of a second implementation of the handshake too, what must be refused is
 * refused, and each snapshot says the same in both of its forms.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { fromJson, toBinary } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { protoFiles } from '../../scripts/agent-fixtures/proto-files.js';
import { agentKeysFrom } from '../../src/channel/noise/control-psk.js';
import { controlPrologue, initiate, sessionIdOf, type NoiseSession } from '../../src/channel/noise/handshake.js';
import { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { ServicePayload } from '../../src/gen/svc/control/v1/session.js';
import { x25519PairOf } from '../../src/kernel/crypto/crypto.js';
import { InboundFrames } from '../../src/transport/agent/frames.js';
import { oracleInitiate } from '../support/noise-oracle.js';
import { valueOf } from '../support/noise-parties.js';
import { exampleText, workedExample } from '../support/worked-example.js';

const folder = new URL('../../examples/fixtures/', import.meta.url);
const read = (name: string): unknown => JSON.parse(readFileSync(new URL(name, folder), 'utf8'));
const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex');

type Handshake = Readonly<Record<string, string>>;
interface Reason {
  readonly why: string;
}
const { handshakes, refused_answers, refused_psks } = read('handshake.json') as {
  readonly handshakes: readonly Handshake[];
  readonly refused_answers: readonly (Reason & { readonly session_id: string; readonly message_2: string })[];
  readonly refused_psks: readonly (Reason & { readonly control_psk: string })[];
};
const { frames, refused } = read('frames.json') as {
  readonly frames: readonly { readonly what: string; readonly payload: string; readonly secure_frame: string }[];
  readonly refused: readonly (Reason & { readonly secure_frame: string })[];
};
const [first = {}] = handshakes;

/** The agent's side of a handshake. */
function agentOf(vector: Handshake) {
  const keys = valueOf(agentKeysFrom(vector.control_psk!));
  const party = {
    prologue: controlPrologue(vector.node_id!),
    psk: keys.psk,
    localStatic: keys.nodeStatic,
    remoteStatic: keys.servicePublic,
    ephemeral: x25519PairOf(bytes(vector.agent_ephemeral_private!)),
  };
  return valueOf(initiate(party, bytes(vector.session_offer!)));
}
const sessionOf = (vector: Handshake): NoiseSession => valueOf(agentOf(vector).finish(bytes(vector.message_2!)));
const inboundOf = (): InboundFrames => new InboundFrames(sessionOf(first).receive, bytes(first.session_id!));

it('has handshakes that a second implementation makes byte for byte, the first of them the worked example', () => {
  for (const vector of handshakes) {
    const agent = oracleInitiate(
      {
        prologue: bytes(vector.prologue!),
        psk: bytes(vector.psk!),
        staticPrivate: bytes(vector.node_static_private!),
        remoteStatic: bytes(vector.service_static_public!),
        ephemeralPrivate: bytes(vector.agent_ephemeral_private!),
      },
      bytes(vector.session_offer!),
    );
    expect(Buffer.from(agent.message).toString('hex')).toBe(vector.message_1);
    const keys = agent.finish(bytes(vector.message_2!));
    expect(Buffer.from(keys.hash).toString('hex')).toBe(vector.handshake_hash);
    expect(vector.handshake_hash!.slice(0, 32)).toBe(vector.session_id);
  }
  const example = exampleText(workedExample());
  for (const name of ['message_1', 'message_2', 'handshake_hash', 'control_psk'])
    expect(example).toContain(first[name]);
});

it('has answers and PSKs that an agent refuses', () => {
  for (const { why, session_id, message_2 } of refused_answers) {
    const finished = agentOf(first).finish(bytes(message_2));
    const isOurs = finished.ok && bytes(session_id).equals(sessionIdOf(finished.value.handshakeHash));
    expect(isOurs, why).toBe(false);
  }
  for (const { why, control_psk } of refused_psks) expect(agentKeysFrom(control_psk).ok, why).toBe(false);
});

it('has frames that carry the payloads beside them, and frames that an agent refuses', () => {
  const inbound = inboundOf();
  for (const { what, payload, secure_frame } of frames) {
    const taken = inbound.take(bytes(secure_frame));
    expect(taken.kind === 'payload' && Buffer.from(taken.bytes).toString('hex'), what).toBe(payload);
    ServicePayload.decode(bytes(payload));
  }
  expect(inboundOf().take(bytes(frames[0]!.secure_frame)).kind).toBe('payload');
  for (const { why, secure_frame } of refused)
    expect(inboundOf().take(bytes(secure_frame)).kind, why).toBe('refused_frame');
});

it('has each snapshot as bytes and as JSON, which say the same', () => {
  const schema = protoFiles().getMessage('svc.control.v1.RuntimeConfigSnapshot')!;
  const names = (read('snapshots/index.json') as readonly { readonly name: string }[]).map(({ name }) => name);
  const files = names.flatMap((name) => [`${name}.binpb`, `${name}.json`]);
  expect(readdirSync(new URL('snapshots/', folder)).toSorted()).toEqual([...files, 'index.json'].toSorted());
  for (const name of names) {
    const binary = readFileSync(new URL(`snapshots/${name}.binpb`, folder));
    const message = fromJson(schema, read(`snapshots/${name}.json`) as never);
    expect(Buffer.from(toBinary(schema, message)).equals(binary), name).toBe(true);
    expect(Buffer.from(RuntimeConfigSnapshot.encode(RuntimeConfigSnapshot.decode(binary)).finish()), name).toEqual(
      binary,
    );
  }
});

/** The worked example of `docs/agent-protocol.md#a-worked-example` against both implementations and the document. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { controlPrologue, initiate, respond, sessionIdOf } from '../../src/channel/noise/handshake.js';
import { x25519PairOf } from '../../src/kernel/crypto/crypto.js';
import { agentKeysFrom } from '../../src/channel/noise/control-psk.js';
import { encodeFrame } from '../../src/transport/agent/frames.js';
import { valueOf } from '../support/noise-parties.js';
import { exampleNode, exampleText, workedExample } from '../support/worked-example.js';

const example = workedExample();
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const row = (name: string, which = 0): string => example.rows.filter(([entry]) => entry === name)[which]![1];

test('the document contains the worked example as the second implementation computes it', () => {
  const document = readFileSync(new URL('../../docs/agent-protocol.md', import.meta.url), 'utf8');
  expect(document).toContain(exampleText(example));
});

test('the handshake and the frames of the service give the bytes of the worked example', () => {
  const keys = valueOf(agentKeysFrom(row('control PSK')));
  expect(keys.fingerprint).toBe(row('fingerprint'));
  const service = x25519PairOf(example.servicePrivate);
  const common = { prologue: controlPrologue(exampleNode), psk: keys.psk };
  const agent = valueOf(
    initiate(
      {
        ...common,
        localStatic: keys.nodeStatic,
        remoteStatic: keys.servicePublic,
        ephemeral: x25519PairOf(example.agentEphemeral),
      },
      example.offer,
    ),
  );
  expect(hex(agent.message)).toBe(row('message 1'));
  const answer = valueOf(
    respond(
      {
        ...common,
        localStatic: service,
        remoteStatic: keys.nodeStatic.publicKey,
        ephemeral: x25519PairOf(example.serviceEphemeral),
      },
      agent.message,
    ),
  );
  expect(hex(answer.payload)).toBe(row('SessionOffer'));
  const served = valueOf(answer.finish(example.grant));
  expect(hex(served.message)).toBe(row('message 2'));
  expect(hex(sessionIdOf(served.handshakeHash))).toBe(row('session_id'));
  const opened = valueOf(agent.finish(served.message));
  const hello = valueOf(opened.send.encrypt(0, Buffer.from(row('its plaintext'), 'hex')));
  expect(hex(hello)).toBe(row('its ciphertext, sequence 0'));
  const unchanged = Buffer.from(`00${row('ServicePayload unchanged 7')}`, 'hex');
  expect(hex(encodeFrame(0, valueOf(served.send.encrypt(0, unchanged))))).toBe(row('its SecureFrame', 2));
});

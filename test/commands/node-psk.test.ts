/** PSKs of nodes: made, sealed and shown once. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CommandHandlers } from '../../src/commands/handlers-port.js';
import { createNodeHandlers } from '../../src/commands/nodes.js';
import type { SealedSecret } from '../../src/domain/secret/sealed.js';
import { decodeControlPsk, deriveNodeSecrets, pskFingerprint } from '../../src/channel/noise/control-psk.js';
import { systemClock } from '../../src/kernel/clock.js';
import { randomIds } from '../../src/kernel/ids.js';
import { x25519PairOf, generateX25519 } from '../../src/kernel/crypto/crypto.js';
import type { Keyring } from '../../src/security/keyring.js';
import { openVerifier } from '../../src/security/psk.js';
import { testKeyring } from '../support/keyring.js';
import { clearTextIn } from '../support/clear-text.js';
import {
  actor,
  createCommandFixture,
  refusalOf,
  type CommandFixture,
  type FleetGateway,
} from '../support/command-fixture.js';
import { notWritten, unavailable } from '../support/scripted-event-store.js';
import { tuning } from '../../src/commands/tuning.js';

let fixture: CommandFixture;
let gateway: FleetGateway;
let keyring: Keyring;
let nodes: CommandHandlers['nodes'];
const servicePublic = generateX25519().publicKey;

beforeEach(async () => {
  fixture = await createCommandFixture();
  gateway = await fixture.gateway();
  keyring = testKeyring();
  nodes = createNodeHandlers({
    gateway,
    keyring,
    serviceKeys: { newest: () => ({ publicKey: servicePublic, named: {} }) },
    clock: systemClock,
    ids: randomIds,
  });
});
afterEach(() => fixture.close());

const context = { actor, requestId: 'r' };
const fields = { name: 'a', description: null, address: null, labels: {}, issuePsk: true };
const create = async (over: Partial<typeof fields> = {}, idempotency?: { key_hash: string; body_hash: string }) => {
  const outcome = await nodes.create({ ...context, idempotency }, { ...fields, ...over });
  if (outcome.kind !== 'done') throw new Error(outcome.kind);
  return outcome.result;
};
const secretsOf = (controlPsk: string | null) => {
  const decoded = decodeControlPsk(controlPsk ?? '');
  if (!decoded.ok) throw new Error(decoded.error);
  const { nodeStaticPrivate, psk } = deriveNodeSecrets(decoded.value.secret);
  const nodeStaticPublic = Uint8Array.from(x25519PairOf(nodeStaticPrivate).publicKey);
  return { ...decoded.value, nodeStaticPrivate, nodeStaticPublic, psk };
};
test('the stored verifier opens to the secrets that the answered PSK derives', async () => {
  const { node, controlPsk } = await create();
  const { servicePublic: pinned, nodeStaticPublic, psk } = secretsOf(controlPsk);
  expect(pinned).toEqual(new Uint8Array(servicePublic));
  const stored = (await fixture.fold()).tables.node.get(node.id)?.psk;
  expect(stored?.fingerprint).toBe(pskFingerprint(nodeStaticPublic));
  const verifier = stored?.verifier as SealedSecret;
  expect(await openVerifier(keyring, verifier, node.id)).toEqual({
    kind: 'opened',
    verifier: { nodeStaticPublic, psk: Uint8Array.from(psk) },
  });
  // It does not open for another node.
  expect(await openVerifier(keyring, verifier, 'another')).toMatchObject({
    kind: 'refused',
  });
});

test('a new PSK replaces the verifier', async () => {
  const { node, controlPsk } = await create();
  const outcome = await nodes.issuePsk(context, node.id);
  if (outcome.kind !== 'done') throw new Error(outcome.kind);
  expect(outcome.result.controlPsk).not.toBe(controlPsk);
  const stored = (await fixture.fold()).tables.node.get(node.id)?.psk;
  expect(stored?.fingerprint).toBe(outcome.result.fingerprint);
  expect(stored?.fingerprint).toBe(pskFingerprint(secretsOf(outcome.result.controlPsk).nodeStaticPublic));
});

test('no part of a PSK is in the log in clear, in any encoding', async () => {
  const { node, controlPsk } = await create();
  const outcome = await nodes.issuePsk(context, node.id);
  const second = outcome.kind === 'done' ? outcome.result.controlPsk : '';
  const log = await fixture.log();
  expect(log.length).toBe(3);
  for (const text of [controlPsk ?? '', second]) {
    const { secret, nodeStaticPrivate, psk } = secretsOf(text);
    expect(clearTextIn(log, [text, text.slice('svcpsk1_'.length), secret, nodeStaticPrivate, psk])).toEqual([]);
  }
  // The search does find a text that is there.
  expect(clearTextIn(log, [node.name])).not.toEqual([]);
});

test('a repeated creation does not answer the PSK again', async () => {
  const mark = { key_hash: 'k', body_hash: 'b' };
  const { node } = await create({}, mark);
  const again = await nodes.create({ ...context, idempotency: mark }, fields);
  expect(again).toMatchObject({ kind: 'repeated', resourceId: node.id });
  expect(clearTextIn([again], ['svcpsk1_'])).toEqual([]);
});

test('a creation that may have been written can be opened later', async () => {
  let write: (() => Promise<unknown>) | undefined;
  fixture.store.script(async (late, call) => {
    write = late;
    fixture.clock.advance(tuning.outcomeWaitMs);
    return notWritten(late, call);
  });
  const refusal = await refusalOf(create());
  expect(refusal.message).toContain('may have been');
  expect(clearTextIn([refusal], ['svcpsk1_'])).toEqual([]);
  await write?.();
  const [node] = [...(await fixture.fold()).tables.node.values()];
  expect(await openVerifier(keyring, node?.psk?.verifier as SealedSecret, node?.id ?? '')).toMatchObject({
    kind: 'opened',
  });
});

test('a creation without a PSK makes none', async () => {
  expect(await create({ issuePsk: false })).toMatchObject({ controlPsk: null, node: { psk: null } });
});

test('the refusal while the store is unavailable holds no part of the PSK', async () => {
  fixture.store.script(unavailable);
  const refusal = await refusalOf(create());
  expect(refusal.code).toBe('unavailable');
  expect(clearTextIn([refusal], ['svcpsk1_'])).toEqual([]);
});

import { createHash, createHmac, randomBytes } from 'node:crypto';
import { x25519 } from '@noble/curves/ed25519.js';
import { describe, expect, it } from 'vitest';
import { controlPrologue, initiate, respond } from '../../src/channel/noise/handshake.js';
import { agentKeysFrom } from '../../src/channel/noise/control-psk.js';
import { createDummyVerifier, issueControlPsk, openVerifier, sealVerifier } from '../../src/security/psk.js';
import { x25519PairOf, generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { testKeyring } from '../support/keyring.js';
import { valueOf } from '../support/noise-parties.js';

const place = { stream: 'svc-fleet', resourceId: 'node-1' };

function hkdf(secret: Uint8Array, info: string): Buffer {
  const prk = createHmac('sha256', 'svc-control-v1').update(secret).digest();
  return createHmac('sha256', prk).update(info).update(Buffer.of(1)).digest();
}

describe('an issued control PSK', () => {
  it('matches the protocol, computed independently', () => {
    const secret = randomBytes(32);
    const identity = generateX25519();
    const issued = issueControlPsk(identity.publicKey, secret);
    expect(issued.controlPsk).toBe(`svcpsk1_${Buffer.concat([secret, identity.publicKey]).toString('base64url')}`);
    const nodePublic = x25519.getPublicKey(hkdf(secret, 'node-static'));
    expect([...issued.verifier.nodeStaticPublic]).toEqual([...nodePublic]);
    expect([...issued.verifier.psk]).toEqual([...hkdf(secret, 'noise-psk')]);
    expect(issued.fingerprint).toBe(`SHA256:${createHash('sha256').update(nodePublic).digest('base64url')}`);
    expect([...identity.publicKey]).toEqual([...x25519.getPublicKey(identity.privateKey)]);
  });

  it('is new each time, and its verifier holds neither the secret nor a private key', () => {
    const identity = generateX25519();
    const [one, two] = [issueControlPsk(identity.publicKey), issueControlPsk(identity.publicKey)];
    expect(one.controlPsk).not.toBe(two.controlPsk);
    const stored = Buffer.concat([one.verifier.nodeStaticPublic, one.verifier.psk]);
    const secret = Buffer.from(one.controlPsk.slice(8), 'base64url').subarray(0, 32);
    expect(stored.includes(secret)).toBe(false);
    expect(stored.includes(hkdf(secret, 'node-static'))).toBe(false);
  });

  it('completes a handshake with its sealed verifier, and not with a dummy verifier', async () => {
    const identity = generateX25519();
    const issued = issueControlPsk(identity.publicKey);
    const keyring = testKeyring();
    const sealed = await sealVerifier(keyring, issued.verifier, 'node-1');
    const opened = await openVerifier(keyring, sealed, 'node-1');
    if (opened.kind !== 'opened') throw new Error(opened.kind);

    const agent = valueOf(agentKeysFrom(issued.controlPsk));
    expect(agent.fingerprint).toBe(issued.fingerprint);
    const prologue = controlPrologue('node-1');
    const first = valueOf(
      initiate(
        { prologue, psk: agent.psk, localStatic: agent.nodeStatic, remoteStatic: agent.servicePublic },
        Buffer.from('offer'),
      ),
    );
    const answerAs = (verifier: { nodeStaticPublic: Uint8Array; psk: Uint8Array }) =>
      respond(
        {
          prologue,
          psk: verifier.psk,
          localStatic: x25519PairOf(identity.privateKey),
          remoteStatic: verifier.nodeStaticPublic,
        },
        first.message,
      );
    expect(answerAs(createDummyVerifier())).toEqual({ ok: false, error: 'bad_tag' });
    expect(Buffer.from(valueOf(answerAs(opened.verifier)).payload).toString()).toBe('offer');
  });

  it('does not open for another node, nor with another keyring', async () => {
    const keyring = testKeyring();
    const sealed = await sealVerifier(keyring, issueControlPsk(generateX25519().publicKey).verifier, 'node-1');
    expect(await openVerifier(keyring, sealed, 'node-2')).toEqual({
      kind: 'refused',
      reason: 'tampered',
    });
    expect(openVerifier(testKeyring(8), sealed, 'node-1')).toEqual({ kind: 'refused', reason: 'unknown_key' });
  });

  it('does not open from a sealed value of another length', async () => {
    const keyring = testKeyring();
    for (const length of [0, 63, 65]) {
      const sealed = await keyring.seal(new Uint8Array(length), { ...place, field: 'psk_verifier' });
      expect(await openVerifier(keyring, sealed, 'node-1')).toEqual({ kind: 'refused', reason: 'malformed' });
    }
  });

  it('refuses keys of another length without showing them', () => {
    const wrong = randomBytes(31);
    for (const attempt of [() => issueControlPsk(wrong), () => issueControlPsk(randomBytes(32), wrong)]) {
      expect(attempt).toThrow(/expected 32 bytes, got 31/);
    }
  });
});

/**
 * Server and client against the reference implementation of REALITY (`test/servers/reality`), with the hellos of several
 * browsers and targets of several kinds.
 */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../scripts/stack/process.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { openReality } from '../../src/agent/reality/handshake.js';
import { systemClock } from '../../src/kernel/clock.js';
import { realityBinary, runReferenceClient, startGoTarget, startReferenceServer } from '../servers/reality-process.js';
import type { RunningServer } from '../servers/json-process.js';
import { startRealityFixture, startTlsTarget, targetName, type RealityFixture } from '../support/reality-fixture.js';

const targets = {
  'of Go with P-256 and a hybrid key exchange': () => startGoTarget(targetName),
  'of Go with RSA and X25519 alone': () => startGoTarget(targetName, { rsa: true, classic: true }),
  'of OpenSSL': () => startTlsTarget({ ALPNProtocols: ['h2', 'http/1.1'] }),
  'of OpenSSL with ChaCha20-Poly1305': () => startTlsTarget({ ciphers: 'TLS_CHACHA20_POLY1305_SHA256' }),
  'of OpenSSL with AES-128': () => startTlsTarget({ ciphers: 'TLS_AES_128_GCM_SHA256' }),
} as const;

describe.skipIf(!existsSync(realityBinary))('beside the reference implementation', () => {
  // Concurrently, because this client visits a server that it does not find for some seconds.
  describe.concurrent.each(Object.entries(targets))('with a target %s', (_name, startTarget) => {
    let target: { readonly port: number; close(): Promise<void> };
    let fixture: RealityFixture;
    beforeAll(async () => {
      target = await startTarget();
      // The reference client has the clock of the machine.
      fixture = await startRealityFixture(target.port, {}, systemClock);
    });
    afterAll(async () => {
      await fixture.close();
      await target.close();
    });

    test.sequential.each(['chrome', 'firefox', 'safari'] as const)(
      'a client that looks like %s finds this service, and its bytes pass',
      async (browser) => {
        const before = fixture.listener.accepted.length;
        const { access } = fixture;
        const keyed = { key: access.publicKey, shortId: access.shortId, name: targetName };
        const called = runReferenceClient(keyed, fixture.port, browser, 300_000);
        const { stream } = await eventually('the client is accepted', async () => fixture.listener.accepted[before]);
        stream.pipe(stream);
        expect(await called).toEqual({ verified: true, echoed: true });
      },
    );

    test('this client finds the reference server, and its bytes pass', async () => {
      const keys = generateX25519();
      const named = { shortId: '0123456789abcdef', name: targetName };
      const server: RunningServer = await startReferenceServer({ key: keys.privateKey, ...named }, target.port);
      try {
        const access = { publicKey: Buffer.from(keys.publicKey), shortId: named.shortId, serverName: named.name };
        const opened = await openReality(await fixture.dial(server.port), access, systemClock, 20_000);
        if (!opened.ok) throw new Error(opened.error);
        const { value: stream } = opened;
        const sent = Buffer.alloc(200_000, 'bytes of an agent, ');
        let got = '';
        stream.on('data', (bytes: Buffer) => (got += bytes.toString('latin1')));
        stream.write(sent);
        await eventually('all bytes are back', async () => got.length >= sent.length || undefined);
        expect(got).toBe(sent.toString('latin1'));
        stream.destroy();
        const wrong = { ...access, shortId: 'ff' };
        const refused = await openReality(await fixture.dial(server.port), wrong, systemClock, 20_000);
        expect(refused.ok).toBe(false);
      } finally {
        await server.close();
      }
    });
  });

  test('with a target that asks for another hello, everybody meets the target', async () => {
    const target = await startGoTarget(targetName, { p256: true });
    const fixture = await startRealityFixture(target.port, {}, systemClock);
    try {
      const keyed = { key: fixture.access.publicKey, shortId: fixture.access.shortId, name: targetName };
      expect(await runReferenceClient(keyed, fixture.port, 'chrome', 1)).toEqual({ verified: false });
      expect(fixture.listener.refusals.map(({ reason }) => reason)).toEqual(['reality_unusable_target']);
    } finally {
      await fixture.close();
      await target.close();
    }
  });
});

/**
 * A stock Xray client enters a chain by a REALITY hop of the reference agent. The chain's target is a stock Xray server of VLESS, in
 * the clear or itself inside REALITY.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { relayLimits } from '../../src/agent/relays/limits.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { startXray, xrayBinary } from '../servers/xray-process.js';
import { agentRuntime } from '../support/agent-runtime.js';
import { startTlsTarget, targetName } from '../support/reality-fixture.js';
import { freePort, overReality, realityRule, snapshot, tcpServer } from '../support/snapshots.js';

const closers: (() => Promise<void>)[] = [];
const limits = { ...relayLimits };
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
  Object.assign(relayLimits, limits);
});

describe.skipIf(!existsSync(xrayBinary))('stock Xray', () => {
  it.each([
    { fingerprint: 'chrome', target: 'of VLESS' },
    { fingerprint: 'firefox', target: 'of VLESS inside REALITY' },
  ])(
    'enters a REALITY hop as $fingerprint; the target of the chain is a server $target',
    async ({ fingerprint, target }) => {
      Object.assign(relayLimits, { realityProbeMs: 100 });
      const front = await startTlsTarget({ ALPNProtocols: ['h2', 'http/1.1'] });
      const web = await tcpServer((socket) => socket.pipe(socket));
      closers.push(front.close, web.close);
      const [entry, hop, vless] = [await freePort(), await freePort(), await freePort()];
      const [keys, upstream, id] = [generateX25519(), generateX25519(), randomUUID()];
      const encoded = (key: Uint8Array): string => Buffer.from(key).toString('base64url');
      const hidden = target === 'of VLESS inside REALITY';
      const server = await startXray({
        inbounds: [
          {
            listen: '127.0.0.1',
            port: vless,
            protocol: 'vless',
            settings: { clients: [{ id }], decryption: 'none' },
            ...(hidden && {
              streamSettings: {
                network: 'tcp',
                security: 'reality',
                realitySettings: {
                  dest: `127.0.0.1:${front.port}`,
                  serverNames: [targetName],
                  privateKey: encoded(upstream.privateKey),
                  shortIds: ['0a'],
                },
              },
            }),
          },
        ],
        outbounds: [{ protocol: 'freedom' }],
      });
      closers.push(server.close);
      const of = { keys, serverNames: [targetName], targetPort: front.port };
      const gateway = agentRuntime(closers);
      const next = `127.0.0.1:${vless}`;
      const onward = hidden ? overReality(next, upstream.publicKey, targetName) : {};
      const report = await gateway.apply(snapshot(1, { tcp: [{ ...realityRule(hop, next, of), ...onward }] }));
      expect(report?.errors).toEqual([]);
      const user = { id, encryption: 'none' };
      const client = await startXray({
        inbounds: [
          {
            listen: '127.0.0.1',
            port: entry,
            protocol: 'dokodemo-door',
            settings: { address: '127.0.0.1', port: web.port, network: 'tcp' },
          },
        ],
        outbounds: [
          {
            protocol: 'vless',
            settings: { vnext: [{ address: '127.0.0.1', port: hop, users: [user] }] },
            streamSettings: {
              network: 'tcp',
              security: 'reality',
              realitySettings: {
                serverName: targetName,
                publicKey: encoded(keys.publicKey),
                shortId: '0a',
                fingerprint,
              },
            },
          },
        ],
      });
      closers.push(client.close);
      const socket = connect(entry, '127.0.0.1');
      closers.push(async () => void socket.destroy());
      const sent = Buffer.alloc(1_000_000, 'through a REALITY hop, ');
      socket.write(sent);
      const parts: Buffer[] = [];
      let length = 0;
      while (length < sent.length) {
        const [part] = (await once(socket, 'data', { signal: AbortSignal.timeout(20_000) })) as [Buffer];
        parts.push(part);
        length += part.length;
      }
      expect(Buffer.concat(parts).equals(sent)).toBe(true);
      expect(gateway.report().connections).toMatchObject({ accepted: 1n, failed: 0n });
    },
  );
});

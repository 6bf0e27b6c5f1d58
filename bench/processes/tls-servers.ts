/**
 * The servers of the benchmark of REALITY, each role in a process of its own: `listener`, the agent listener with REALITY, and
 * `tls`, a TLS server of Node, which is the target as well as the floor. Both swallow what comes and count it.
 */
import { once } from 'node:events';
import { createServer } from 'node:tls';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { x25519PairOf } from '../../src/kernel/crypto/crypto.js';
import { createSelfSigned } from '../../src/security/self-signed.js';
import { startListener } from '../../src/transport/listener/listener.js';
import { answerParent } from '../child.js';

export interface ListenerSetup {
  readonly targetPort: number;
  /** Base64url. */
  readonly privateKey: string;
  readonly serverName: string;
  readonly shortId: string;
}

let bytes = 0;
let accepted = 0;

function swallow(stream: Duplex): void {
  accepted += 1;
  stream.on('error', () => undefined);
  stream.on('data', (chunk: Buffer) => (bytes += chunk.length));
  stream.on('end', () => stream.end());
}

answerParent({
  async listener({ targetPort, privateKey, serverName, shortId }: ListenerSetup) {
    const { address } = await startListener(
      {
        host: '127.0.0.1',
        port: 0,
        maxConnections: 10_000,
        proxyFrom: [],
        clock: systemClock,
        logger: silentLogger,
        refusals: { note: () => 0 },
        reality: {
          keys: x25519PairOf(Buffer.from(privateKey, 'base64url')),
          serverNames: [serverName],
          shortIds: [shortId],
          target: { host: '127.0.0.1', port: targetPort },
          maxTimeDiffMs: 60_000,
          allowH2c: false,
          probeMs: 500,
        },
      },
      ({ stream }) => swallow(stream),
    );
    return Number(address.split(':')[1]);
  },
  async tls(serverName: string) {
    const { certificatePem, privateKeyPem } = await createSelfSigned({
      commonName: serverName,
      subjectAltNames: [serverName],
      notBefore: Date.now() - 86_400_000,
      notAfter: Date.now() + 86_400_000,
    });
    const server = createServer({ cert: certificatePem, key: privateKeyPem, minVersion: 'TLSv1.3' }, swallow);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  },
  /** Bytes received so far, and this process's processor time in milliseconds. */
  state() {
    const { user, system } = process.cpuUsage();
    return { bytes, accepted, cpuMs: (user + system) / 1000 };
  },
});

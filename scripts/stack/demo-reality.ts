/** REALITY in the demo: a target inside the demo, keys generated for it, and a prober that speaks plain h2c. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { formatEndpoint } from '../../src/channel/reality/endpoint.js';
import { parseHostPort } from '../../src/kernel/host-port.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { h2cPreface } from '../../src/transport/listener/sniff.js';
import { fetchThrough, httpsTarget } from './demo-traffic.js';

export interface DemoReality {
  /** For the service. */
  readonly env: Readonly<Record<string, string>>;
  /** For an agent. @param controlEndpoint `http://host:port` of the listener */
  endpoint(controlEndpoint: string): string;
  /** Connects to the listener as a stranger. */
  probe(controlEndpoint: string): Promise<Probed>;
  close(): void;
}

interface Probed {
  readonly port: number;
  /** The answers to the h2c preface, from the listener and from the target itself, in hexadecimal. */
  readonly answer: { readonly listener: string; readonly target: string };
  /** The page that the listener shows over TLS. */
  readonly page: string;
}

const serverName = 'camouflage.example';

export async function startDemoReality(): Promise<DemoReality> {
  const target = await httpsTarget('the camouflage', serverName);
  const keys = generateX25519();
  const shortId = '5eed';
  const address = (controlEndpoint: string) => {
    const parsed = parseHostPort(controlEndpoint.replace('http://', ''));
    if (parsed === undefined) throw new Error(`expected http://host:port, got ${controlEndpoint}`);
    return parsed;
  };
  return {
    env: {
      SVC_REALITY_PRIVATE_KEY: Buffer.from(keys.privateKey).toString('base64url'),
      SVC_REALITY_SERVER_NAMES: serverName,
      SVC_REALITY_SHORT_IDS: shortId,
      SVC_REALITY_TARGET: `127.0.0.1:${target.port}`,
    },
    endpoint: (controlEndpoint) =>
      formatEndpoint({
        ...address(controlEndpoint),
        reality: { publicKey: Buffer.from(keys.publicKey), shortId, serverName },
      }),
    async probe(controlEndpoint) {
      const { port } = address(controlEndpoint);
      const [listener = '', itself = ''] = await Promise.all(
        [port, target.port].map((one) => answerTo(one, h2cPreface)),
      );
      const { text } = await fetchThrough(port, { host: serverName, tls: true });
      return { port, answer: { listener, target: itself }, page: text };
    },
    close: () => target.close(),
  };
}

/** All bytes, in hexadecimal, that a server on this machine answers until the connection ends. */
async function answerTo(port: number, bytes: Uint8Array): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, timeout: 10_000 });
  const parts: Buffer[] = [];
  socket.on('data', (part: Buffer) => parts.push(part));
  socket.on('timeout', () => socket.destroy());
  socket.write(bytes);
  await once(socket, 'close');
  return Buffer.concat(parts).toString('hex');
}

/** Targets of the demo's chains, and requests through them. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, request, type RequestListener } from 'node:http';
import { createServer as createTlsServer, request as tlsRequest } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createSelfSigned } from '../../src/security/self-signed.js';

export interface DemoTarget {
  readonly port: number;
  close(): void;
}

const hello =
  (name: string): RequestListener =>
  (_request, response) =>
    response.end(`hello from ${name}\n`);

async function listening(server: Server): Promise<DemoTarget> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

/** An HTTP server that answers with its name. */
export function httpTarget(name: string): Promise<DemoTarget> {
  return listening(createServer(hello(name)));
}

/** The same over TLS, with its own certificate. */
export async function httpsTarget(name: string, host: string): Promise<DemoTarget> {
  const now = Date.now();
  const { certificatePem, privateKeyPem } = await createSelfSigned({
    commonName: host,
    subjectAltNames: [host],
    notBefore: now - 60_000,
    notAfter: now + 86_400_000,
  });
  return listening(createTlsServer({ cert: certificatePem, key: privateKeyPem }, hello(name)));
}

/** Answers each datagram with its name and the datagram. */
export async function udpTarget(name: string): Promise<DemoTarget> {
  const socket = createSocket('udp4');
  socket.on('message', (datagram, from) => socket.send(`${name}: ${datagram.toString()}`, from.port, from.address));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { port: socket.address().port, close: () => socket.close() };
}

interface FetchOptions {
  /** The requested host, in HTTP and in TLS. */
  readonly host?: string;
  readonly path?: string;
  readonly tls?: boolean;
}

interface Fetched {
  readonly text: string;
  /** The pin of the certificate that was shown, as REST writes it; empty without TLS. */
  readonly spki: string;
}

const fetchWithinMs = 5_000;

/** One request on its own connection. Certificates are not verified: the caller checks the key. */
export function fetchThrough(port: number, options: FetchOptions = {}): Promise<Fetched> {
  const { host = '127.0.0.1', path = '/', tls = false } = options;
  return new Promise((resolve, reject) => {
    const place = { host: '127.0.0.1', port, path, headers: { host }, agent: false, timeout: fetchWithinMs } as const;
    const sent = tls ? tlsRequest({ ...place, servername: host, rejectUnauthorized: false }) : request(place);
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
    sent.on('error', reject);
    // An answer 101 ends this way, without an error.
    sent.on('close', () => reject(new Error('no answer')));
    sent.on('response', (response) => {
      const spki = tls ? spkiOf(response.socket as TLSSocket) : '';
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('error', reject);
      response.on('end', () =>
        response.statusCode === 200
          ? resolve({ text: text.trim(), spki })
          : reject(new Error(`status ${response.statusCode ?? 0}`)),
      );
    });
    sent.end();
  });
}

function spkiOf(socket: TLSSocket): string {
  const key = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'der' });
  return key === undefined ? '' : createHash('sha256').update(key).digest('base64');
}

/** Sends datagrams until one is answered. */
export async function askOverUdp(port: number, text: string): Promise<string> {
  const socket = createSocket('udp4');
  const again = setInterval(() => socket.send(text, port, '127.0.0.1'), 50);
  try {
    const [answer] = (await once(socket, 'message', { signal: AbortSignal.timeout(fetchWithinMs) })) as [Buffer];
    return answer.toString();
  } finally {
    clearInterval(again);
    socket.close();
  }
}

export interface Traffic {
  readonly count: { ok: number; failed: number };
  stop(): Promise<void>;
}

/** Fetches until stopped, each time on a new connection, and counts the results. */
export function startTraffic(port: number, options?: FetchOptions): Traffic {
  const count = { ok: 0, failed: 0 };
  const stopping = new AbortController();
  const done = (async () => {
    while (!stopping.signal.aborted) {
      await fetchThrough(port, options).then(
        () => (count.ok += 1),
        () => (count.failed += 1),
      );
      await delay(10);
    }
  })();
  return {
    count,
    async stop() {
      stopping.abort();
      await done;
    },
  };
}

/** @throws Error that says what was wrong */
export function expectEqual(what: string, got: unknown, wanted: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(wanted)) {
    throw new Error(`${what}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`);
  }
}

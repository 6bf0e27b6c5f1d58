/**
 * REALITY as an observer on the path sees it: handshakes of agents beside those of strangers with hellos of the same browser, through
 * the same listener to the same target. How long the records of both are, and when the first byte of the answer comes.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { x25519PairOf } from '../src/kernel/crypto/crypto.js';
import { createRecordReader } from '../src/channel/tls/record-reader.js';
import { startChild } from './child.js';
import { beside, type Figure, type Report } from './figures.js';
import type { BenchOptions } from './options.js';
import type { ListenerSetup } from './processes/tls-servers.js';

/** The reference implementation, whose client imitates browsers; `npm run test:servers` builds it. */
const reference = 'dist/test-servers/reality';
const browsers = ['chrome', 'firefox', 'safari'] as const;
const serverName = 'target.example';
const shortId = '0100000000000000';
const noShortId = 'ff00000000000000';
/** Used only by this benchmark. */
const privateKey = Buffer.alloc(32, 7);
const publicKey = Buffer.from(x25519PairOf(privateKey).publicKey).toString('base64url');
/** ServerHello, change of ciphers, and the four messages. */
const flightRecords = 6;
const startWithinMs = 20_000;

interface Seen {
  /** Milliseconds from the hello to the first byte of the answer. */
  readonly firstByteMs: number;
  /** The lengths of the flight's records, as one text. */
  readonly lengths: string;
}

interface Front {
  readonly port: number;
  /** The observation of the next connection, once it is closed. */
  next(): Promise<Seen>;
  close(): void;
}

export async function realityShape({ quick }: BenchOptions): Promise<Report> {
  if (!existsSync(reference)) throw new Error(`expected ${reference}: run npm run test:servers`);
  const rounds = quick ? 5 : 100;
  const figures: { [target: string]: { [browser: string]: Figure } } = {};
  for (const [name, options] of [
    ['go with X25519MLKEM768', []],
    ['go with X25519 alone', ['-classic=true']],
  ] as const) {
    const target = await startTarget(options);
    const listener = startChild('processes/tls-servers');
    try {
      const setup = { targetPort: target.port, privateKey: privateKey.toString('base64url'), serverName, shortId };
      const front = await startFront(await listener.ask<number>('listener', setup satisfies ListenerSetup));
      // The first agent waits until it is known what the target sends after a handshake.
      await shake(front, 'chrome', shortId);
      const ofTarget: { [browser: string]: Figure } = {};
      for (const browser of browsers) ofTarget[browser] = await compare(front, browser, rounds);
      figures[name] = ofTarget;
      front.close();
    } finally {
      await listener.close();
      target.child.kill();
    }
  }
  return { bench: 'reality-shape', figures };
}

async function compare(front: Front, browser: (typeof browsers)[number], rounds: number): Promise<Figure> {
  const [agents, strangers]: [Seen[], Seen[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    agents.push(await shake(front, browser, shortId));
    strangers.push(await shake(front, browser, noShortId));
  }
  const lengths = new Set(strangers.map((one) => one.lengths));
  return {
    handshakes: agents.length,
    agents_with_lengths_of_the_target: agents.filter((one) => lengths.has(one.lengths)).length,
    lengths_of_the_target: [...lengths].join(' or '),
    first_byte_ms: beside(
      agents.map((one) => one.firstByteMs),
      strangers.map((one) => one.firstByteMs),
    ),
  };
}

async function startTarget(
  options: readonly string[],
): Promise<{ readonly port: number; readonly child: ChildProcess }> {
  const child = spawn(reference, ['target', `-name=${serverName}`, ...options], { stdio: ['pipe', 'pipe', 'ignore'] });
  const signal = AbortSignal.timeout(startWithinMs);
  const [line] = (await once(createInterface({ input: child.stdout }), 'line', { signal })) as [string];
  return { child, port: (JSON.parse(line) as { readonly port: number }).port };
}

async function shake({ port, next }: Front, browser: string, id: string): Promise<Seen> {
  const named = [`-key=${publicKey}`, `-short-id=${id}`, `-name=${serverName}`, `-browser=${browser}`];
  const child = spawn(reference, ['client', `-address=127.0.0.1:${port}`, ...named], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const [seen] = await Promise.all([next(), once(child, 'exit')]);
  return seen;
}

/** Passes on between a client and the listener, and notes what the listener answers. */
async function startFront(listenerPort: number): Promise<Front> {
  let tell = (_seen: Seen): void => undefined;
  const server = createServer({ noDelay: true }, (client) => {
    const behind = connect({ host: '127.0.0.1', port: listenerPort, noDelay: true });
    for (const socket of [client, behind]) socket.on('error', () => undefined);
    const records = createRecordReader();
    const lengths: number[] = [];
    let [helloAt, firstByteMs] = [0, 0];
    client.once('data', () => (helloAt = performance.now()));
    behind.on('data', (bytes: Buffer) => {
      firstByteMs ||= performance.now() - helloAt;
      records.push(bytes);
      for (let record = records.next(); typeof record === 'object'; record = records.next())
        lengths.push(record.bytes.length);
    });
    client.pipe(behind).pipe(client);
    client.once('close', () => {
      behind.destroy();
      tell({ firstByteMs, lengths: lengths.slice(0, flightRecords).join(' ') });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    next: () => new Promise((resolve) => (tell = resolve)),
    close: () => server.close(),
  };
}

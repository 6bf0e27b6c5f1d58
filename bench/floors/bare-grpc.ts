/**
 * The floor of an agent's connection: grpc-js with plain bytes, a unary call, a stream that answers, and a push that is
 * appended durably before it is sent. No handshake, no encryption, no state.
 */
import { Server, ServerCredentials, type ServerDuplexStream, type ServiceDefinition } from '@grpc/grpc-js';
import { answerParent } from '../child.js';
import { sharedClock } from '../figures.js';
import { openBareLog } from './bare-log.js';

const bytes = (value: Buffer): Buffer => value;
const codec = {
  requestSerialize: bytes,
  requestDeserialize: bytes,
  responseSerialize: bytes,
  responseDeserialize: bytes,
};

/** Both calls take and give plain bytes. */
export const bareService = {
  open: { path: '/bench.Bare/Open', requestStream: false, responseStream: false, ...codec },
  control: { path: '/bench.Bare/Control', requestStream: true, responseStream: true, ...codec },
} as const satisfies ServiceDefinition;

/** First byte of a message on the stream. */
export const kinds = { hello: 1, heartbeat: 2, push: 3, applied: 4, request: 5 } as const;

export interface Push {
  /** Index of one agent, or all of them. */
  readonly to: number | 'all';
  readonly size: number;
  readonly edit: string;
}

function serve(folder: string): void {
  const log = openBareLog(folder);
  const streams = new Map<number, ServerDuplexStream<Buffer, Buffer>>();
  let unconfirmed = 0;
  let confirmed: (() => void) | undefined;
  const grant = Buffer.alloc(120, 7);
  const response = Buffer.alloc(40, kinds.heartbeat);

  const server = new Server();
  server.addService(bareService, {
    open: (_call: unknown, callback: (error: null, value: Buffer) => void) => callback(null, grant),
    control(stream: ServerDuplexStream<Buffer, Buffer>) {
      let index = -1;
      stream.on('data', (message: Buffer) => {
        if (message[0] === kinds.hello) streams.set((index = message.readUInt32BE(1)), stream);
        if (message[0] === kinds.request) stream.write(Buffer.alloc(message.readUInt32BE(1), kinds.push));
        if (message[0] === kinds.heartbeat) stream.write(response);
        if (message[0] === kinds.applied && (unconfirmed -= 1) === 0) confirmed?.();
      });
      const gone = (): void => {
        streams.delete(index);
        stream.end();
      };
      stream.on('end', gone);
      stream.on('error', gone);
    },
  });

  answerParent({
    listen: () =>
      new Promise<number>((resolve, reject) => {
        server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
          error === null ? resolve(port) : reject(error),
        );
      }),
    connected: () => streams.size,
    /** @returns the time on the shared clock when all agents have confirmed */
    async push({ to, size, edit }: Push) {
      await log.append(edit);
      const message = Buffer.alloc(size, kinds.push);
      const targets = to === 'all' ? [...streams.values()] : [streams.get(to)].filter((one) => one !== undefined);
      unconfirmed = targets.length;
      const all = new Promise<void>((resolve) => {
        confirmed = resolve;
      });
      for (const stream of targets) stream.write(message);
      await all;
      return sharedClock();
    },
    memory() {
      globalThis.gc?.();
      globalThis.gc?.();
      const { rss, heapUsed } = process.memoryUsage();
      return { rss, heap: heapUsed };
    },
  });
}

const [folder] = process.argv.slice(2);
// Serve only as a process of its own: its callers import this file for the definitions.
if (folder !== undefined && process.argv[1]?.includes('bare-grpc') === true) serve(folder);

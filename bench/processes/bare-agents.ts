/** A separate process with one connection to the bare gRPC server per agent: hello, heartbeats, confirmed pushes. */
import { Client, credentials } from '@grpc/grpc-js';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { answerParent } from '../child.js';
import { sharedClock } from '../figures.js';
import { bareService, kinds } from '../floors/bare-grpc.js';
import type { AgentEvent } from './agents.js';

const clients: Client[] = [];
const streams: ClientDuplexStream<Buffer, Buffer>[] = [];

/** A client with its own connection, like an agent. */
export function bareClient(port: number): Client {
  return new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_http_proxy': 0,
    'grpc.service_config_disable_resolution': 1,
  });
}

const { tell } = answerParent({
  start({ port, count }: { readonly port: number; readonly count: number }) {
    for (let index = 0; index < count; index += 1) {
      const client = bareClient(port);
      const { path, requestSerialize, responseDeserialize } = bareService.control;
      const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
      const hello = Buffer.alloc(150);
      hello.writeUInt8(kinds.hello, 0);
      hello.writeUInt32BE(index, 1);
      stream.write(hello);
      stream.on('data', (message: Buffer) => {
        if (message[0] !== kinds.push) return;
        tell([{ agent: String(index), generation: 0, at: sharedClock() }] satisfies AgentEvent[]);
        stream.write(Buffer.alloc(100, kinds.applied));
      });
      stream.on('error', () => undefined);
      clients.push(client);
      streams.push(stream);
    }
  },
  heartbeat() {
    for (const stream of streams) stream.write(Buffer.alloc(90, kinds.heartbeat));
  },
});

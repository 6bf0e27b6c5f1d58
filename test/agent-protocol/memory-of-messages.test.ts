/** What the gRPC server keeps of the messages of a stream that stays open. */
import { duplexPair } from 'node:stream';
import { connect, type ClientHttp2Session } from 'node:http2';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { test } from 'vitest';
import { createGrpcServer } from '../../src/transport/agent/grpc-server.js';
import type { AgentConnection } from '../../src/transport/listener/connection.js';
import { SecureAgentServiceService } from '../../src/gen/svc/control/v1/secure_agent_service.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { eventually } from '../support/eventually.js';

const streams = 64;
const messageBytes = 60 * 1024;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes of buffers in memory, with garbage collected. */
function bufferBytes(): number {
  collect();
  return process.memoryUsage().arrayBuffers;
}

function connectionOn(stream: AgentConnection['stream']): AgentConnection {
  const nothing = (): undefined => undefined;
  return {
    id: 0,
    remoteAddress: '192.0.2.1',
    stream,
    closed: false,
    sessionOpened: nothing,
    sessionEnded: nothing,
    hasSession: true,
    unansweredBytes: 0,
    answered: nothing,
    watch: nothing,
    endCostly: nothing,
    onClose: nothing,
    destroy: () => stream.destroy(),
  };
}

test('of a message that was read nothing stays in memory while its stream is open', async () => {
  let taken = 0;
  const server = createGrpcServer(
    {
      openSession: () => Promise.reject(new Error('not called')),
      control: (stream) =>
        stream.start({ message: () => (taken += 1), halfClosed: () => undefined, gone: () => undefined }),
      unsound: () => false,
      takeBytes: () => true,
    },
    silentLogger,
  );
  const clients: ClientHttp2Session[] = [];
  try {
    const calls = Array.from({ length: streams }, () => {
      const [serviceEnd, agentEnd] = duplexPair();
      server.accept(connectionOn(serviceEnd));
      const client = connect('http://localhost', { createConnection: () => agentEnd });
      client.on('error', () => undefined);
      clients.push(client);
      const call = client.request({
        ':method': 'POST',
        ':path': SecureAgentServiceService.control.path,
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      call.on('error', () => undefined);
      return call;
    });
    const send = async (bytes: number): Promise<void> => {
      taken = 0;
      for (const call of calls) {
        const message = Buffer.alloc(5 + bytes);
        message.writeUInt32BE(bytes, 1);
        call.write(message);
      }
      await eventually(() => taken).toBe(streams);
    };
    await send(1);
    const before = bufferBytes();
    await send(messageBytes);
    await eventually(() => bufferBytes() - before).toBeLessThan((streams * messageBytes) / 4);
  } finally {
    for (const client of clients) client.destroy();
    server.close();
  }
});

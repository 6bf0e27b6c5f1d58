/**
 * Checks at start that the installed gRPC library is the one that `grpc-internals.ts` was written for, by a call of its
 * own from end to end. It does not test the library.
 */
import { once } from 'node:events';
import { connect } from 'node:http2';
import { createConnection, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import type { Duplex } from 'node:stream';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { withDeadline } from '../../kernel/background.js';
import { limits } from '../../kernel/limits.js';
import type { AgentConnection } from '../listener/connection.js';
import {
  boundHeaders,
  changedLibrary,
  connectionOf,
  http2StreamOf,
  markConnection,
  takeReading,
  watchServer,
} from './grpc-internals.js';

const checkWithinMs = 5_000;

/**
 * Makes one call over each kind of stream to a gRPC server of its own, and checks that its connection is found, its end
 * is noticed, and the bound on headers is sent.
 * @throws Error if the library has changed
 */
export async function checkGrpcInternals(): Promise<void> {
  for (const pair of [await socketPair(), duplexPair()]) {
    if (await isCallKnown(pair)) continue;
    throw new Error(changedLibrary('keeps the connection of a call'));
  }
}

type Pair = readonly [Duplex, Duplex];

async function isCallKnown([serviceEnd, agentEnd]: Pair): Promise<boolean> {
  const connection: AgentConnection = {
    id: 0,
    remoteAddress: '',
    stream: serviceEnd,
    closed: false,
    sessionOpened: () => undefined,
    sessionEnded: () => undefined,
    hasSession: false,
    unansweredBytes: 0,
    answered: () => undefined,
    watch: () => undefined,
    onClose: () => undefined,
    destroy: () => serviceEnd.destroy(),
  };
  const server = new Server({ 'grpc.enable_channelz': 0 });
  boundHeaders(server);
  const told = { begun: false, called: false };
  const endTold = new Promise<boolean>((resolve) => {
    watchServer(server, {
      begun: (of) => (told.begun = of === connection),
      called: (of) => (told.called = of === connection),
      closed: (of) => resolve(of === connection && told.begun && told.called),
    });
  });
  const connectionFound = new Promise<boolean>((resolve) => {
    const pass = (bytes: Buffer): Buffer => bytes;
    server.register(
      '/self.Check/Stream',
      (call: ServerDuplexStream<Buffer, Buffer>) => {
        const known = connectionOf(call) === connection && typeof http2StreamOf(call)?.close === 'function';
        resolve(known && takeReading(call, () => undefined));
        call.end();
      },
      pass,
      pass,
      'bidi',
    );
  });
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  markConnection(connection);
  injector.injectConnection(serviceEnd);
  const client = connect('http://localhost', { createConnection: () => agentEnd });
  try {
    client.on('error', () => undefined);
    const request = client.request({
      ':method': 'POST',
      ':path': '/self.Check/Stream',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    request.on('error', () => undefined);
    request.resume();
    request.end();
    const both = Promise.all([connectionFound, endTold]).then((known) => !known.includes(false));
    const known = (await withDeadline(both, checkWithinMs)) === true;
    return known && client.remoteSettings.maxHeaderListSize === limits.agent.headerListBytes;
  } finally {
    client.destroy();
    injector.destroy();
    server.forceShutdown();
    serviceEnd.destroy();
    agentEnd.destroy();
  }
}

/** The two ends of a TCP connection over loopback. */
async function socketPair(): Promise<Pair> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const agentEnd = createConnection((server.address() as AddressInfo).port, '127.0.0.1');
  const [serviceEnd] = (await once(server, 'connection')) as [Socket];
  server.close();
  return [serviceEnd, agentEnd];
}

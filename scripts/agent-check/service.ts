/**
 * The listener of the kit: one port, h2c, on which each node's agent finds the service played for it. Scenarios cut its
 * connections.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { Metadata, Server, ServerCredentials, status, type ServerDuplexStream } from '@grpc/grpc-js';
import {
  SecureAgentServiceService,
  type SecureAgentServiceServer,
} from '../../src/gen/svc/control/v1/secure_agent_service.js';
import type { SecureFrame } from '../../src/gen/svc/control/v1/session.js';
import { formatHostPort, type HostPort } from '../../src/kernel/host-port.js';
import { limits } from '../../src/kernel/limits.js';
import { createNode, type NodeCalls, type PlayedNode } from './node.js';
import type { Granted } from './session.js';

export interface CheckService {
  /** For `SVC_CONTROL_ENDPOINT`. */
  readonly endpoint: string;
  addNode(): PlayedNode;
  /** Resets a connection. @param peer as named by a session */
  cut(peer: string): void;
  close(): Promise<void>;
}

/** @throws Error if it cannot listen there */
export async function startCheckService(at: HostPort): Promise<CheckService> {
  const nodes = new Map<string, PlayedNode & NodeCalls>();
  const pending = new Map<string, Granted>();
  const sockets = new Map<string, Socket>();

  const control = (call: ServerDuplexStream<SecureFrame, SecureFrame>): void => {
    call.on('error', () => undefined);
    call.once('data', (first: SecureFrame) => {
      const id = first.sessionId.toString('hex');
      const granted = pending.get(id);
      pending.delete(id);
      const node = nodes.get(granted?.nodeId ?? '');
      if (granted !== undefined && node !== undefined) return node.control(call, granted, first);
      call.emit('error', { code: status.UNAUTHENTICATED, details: 'session refused', metadata: new Metadata() });
    });
  };
  const implementation: SecureAgentServiceServer = {
    openSession(call, answer) {
      const node = nodes.get(call.request.nodeId);
      if (node === undefined) return answer({ code: status.UNAUTHENTICATED, details: 'session refused' });
      node.openSession(call, answer, (granted) => pending.set(granted.sessionId.toString('hex'), granted));
    },
    control,
  };
  const server = new Server({ 'grpc.max_receive_message_length': limits.agent.grpcMessageBytes });
  server.addService(SecureAgentServiceService, implementation);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());

  const listener = createServer((socket) => {
    const peer = formatHostPort({ host: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 });
    sockets.set(peer, socket);
    socket.on('close', () => sockets.delete(peer));
    socket.on('error', () => undefined);
    injector.injectConnection(socket);
  });
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject);
    listener.listen(at.port, at.host, resolve);
  });
  const { port } = listener.address() as AddressInfo;

  return {
    endpoint: `http://${formatHostPort({ host: at.host, port })}`,
    addNode() {
      const node = createNode();
      nodes.set(node.nodeId, node);
      return node;
    },
    cut: (peer) => void sockets.get(peer)?.resetAndDestroy(),
    async close() {
      const closed = new Promise((resolve) => listener.close(resolve));
      for (const socket of sockets.values()) socket.destroy();
      injector.destroy();
      server.forceShutdown();
      await closed;
    },
  };
}

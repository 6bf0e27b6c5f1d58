/**
 * One listening UDP socket with all its rules: ENC for clients that shake hands with one of its keys, the RAW rule for
 * all other datagrams. A flow is a client's address and port, or its session in ENC, and ends after a time of silence.
 * Implements `docs/contract/agent-protocol.md#the-reference-agent` and `docs/data-plane.md#sharing-a-listener`.
 */
import { once } from 'node:events';
import { createSocket, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { createEncListener, type EncPeer, type PeerAddress } from '../../channel/enc/listener.js';
import { errorText } from '../../kernel/errors.js';
import type { ListenerPlan, RelayRoute, UdpService } from '../plan/plan.js';
import { relayLimits } from './limits.js';
import { createMeter, type Meter } from './meters.js';
import type { RelayDependencies, RelayListener } from './relay.js';
import { sendQueueBytes, startFlow, type Flow } from './udp-flow.js';

/** How often flows are checked. */
const pollMs = 250;
/** How long handshakes are answered before the socket is read again. */
const handshakesMs = 5;
/** Bytes that the kernel may buffer for a socket, within its own limit: a burst of new flows must wait somewhere. */
const receiveBufferBytes = 4 * 1024 * 1024;

/** The flows of a listener. */
function createFlows({ upstreams, links, clock }: RelayDependencies, meter: Meter) {
  /** By address and port of a client of the RAW rule, or by ENC peer. */
  const flows = new Map<string | EncPeer<RelayRoute>, Flow>();

  /** The client's flow, created if missing; undefined if it is refused. */
  const flowOf = (
    key: string | EncPeer<RelayRoute>,
    route: RelayRoute,
    reply: (datagram: Buffer) => boolean,
  ): Flow | undefined => {
    const existing = flows.get(key);
    if (existing !== undefined) return existing;
    const picked = flows.size < relayLimits.udpFlowsPerListener ? upstreams.pick(route) : undefined;
    const [endpoint] = picked?.endpoints ?? [];
    if (picked === undefined || endpoint === undefined) {
      meter.refused();
      return undefined;
    }
    const flow = startFlow({
      endpoint,
      security: route.security,
      meter,
      link: links.of(route.origin, endpoint, 'udp'),
      clock,
      settled: picked.settled,
      reply,
      ended() {
        flows.delete(key);
        if (typeof key !== 'string') key.close();
      },
    });
    flows.set(key, flow);
    return flow;
  };

  return { flows, flowOf };
}

/** @throws the system's error if it cannot bind */
async function boundSocket(address: string, port: number): Promise<Socket> {
  const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4' });
  socket.bind({ address, port, exclusive: true });
  await once(socket, 'listening').catch((error: unknown) => {
    socket.close();
    throw error;
  });
  try {
    socket.setRecvBufferSize(receiveBufferBytes);
  } catch {
    // A kernel that refuses sizes above its limit keeps the socket's default.
  }
  return socket;
}

/** Opens the listener; rejects with the system's error if it cannot bind. */
export async function openUdpListener(
  { addr, port }: Pick<ListenerPlan, 'addr' | 'port'>,
  dependencies: RelayDependencies,
): Promise<RelayListener> {
  const { clock, logger } = dependencies;
  const meter = createMeter(dependencies.totals);
  const { flows, flowOf } = createFlows(dependencies, meter);
  let current: UdpService | undefined;
  let bound = false;

  const transmit = (datagram: Buffer, to: PeerAddress): boolean => {
    if (!bound || listening.getSendQueueSize() > sendQueueBytes) return false;
    listening.send(datagram, to.port, to.address, () => undefined);
    return true;
  };
  const enc = createEncListener<RelayRoute>({
    transmit,
    met: (peer) => flowOf(peer, peer.rule, (answer) => peer.send(answer, clock.monotonic())) !== undefined,
    deliver: (datagram, peer) => flows.get(peer)?.forward(datagram),
    // With RAW first, a datagram that only looks like a handshake belongs to RAW.
    refused: (datagram, client) => current?.rawFirst === true && relayRaw(datagram, client),
    now: clock.monotonic(),
  });

  const relayRaw = (datagram: Buffer, client: PeerAddress): void => {
    const fallback = current?.fallback;
    if (fallback !== undefined)
      flowOf(`${client.address} ${client.port}`, fallback, (answer) => transmit(answer, client))?.forward(datagram);
  };

  let answering: NodeJS.Immediate | undefined;
  /** Answers waiting handshakes, and reads the socket in between. */
  const answerHandshakes = (): void => {
    const until = clock.monotonic() + handshakesMs;
    let more = true;
    for (let now = clock.monotonic(); more && now < until; now = clock.monotonic()) more = enc.answerOne(now);
    answering = more ? setImmediate(answerHandshakes) : undefined;
  };

  const receive = (datagram: Buffer, client: PeerAddress): void => {
    // Nothing can be sent to port 0, which a spoofed datagram may be from.
    if (current === undefined || client.port === 0) return;
    const isOwned = current.rawFirst && flows.has(`${client.address} ${client.port}`);
    const taken = isOwned ? 'other' : enc.take(datagram, client, clock.monotonic());
    if (taken === 'waits') answering ??= setImmediate(answerHandshakes);
    else if (taken === 'other' || (taken === 'dropped' && current.rawFirst)) relayRaw(datagram, client);
  };

  const listen = async (): Promise<Socket> => {
    const opened = await boundSocket(addr, port);
    // A datagram that cannot be received is lost like any other.
    opened.on('error', (error) => logger.error({ addr, port, error: errorText(error) }, 'a UDP listener failed'));
    opened.on('message', receive);
    bound = true;
    return opened;
  };
  let listening = await listen();

  const poller = setInterval(() => {
    const now = clock.monotonic();
    enc.poll(now);
    for (const flow of flows.values()) {
      flow.poll();
      if (now - flow.lastUsed >= relayLimits.udpIdleMs) flow.end(false);
    }
  }, pollMs);
  poller.unref();

  const release = (): void => {
    if (bound) listening.close();
    bound = false;
    for (const flow of flows.values()) flow.end(false);
    clearImmediate(answering);
    answering = undefined;
    enc.close();
  };

  return {
    meter,
    get state() {
      return bound ? 'running' : 'failed';
    },
    serve({ transport, service }) {
      if (transport !== 'udp' || service === undefined) return;
      current = service;
      enc.setKeys(service.enc.map(({ keys, route }) => ({ keys, rule: route })));
    },
    suspend: release,
    async resume() {
      listening = await listen();
    },
    async close() {
      clearInterval(poller);
      current = undefined;
      release();
    },
  };
}

/**
 * The agent listener, one TCP socket: accepts connections, reads their first bytes, hands over those that speak HTTP/2
 * with prior knowledge (h2c), and closes all others and those that stay without a session for too long. With REALITY,
 * the others are mirrored to its target, and those that turn out to be agents are handed over. When full, a newcomer
 * replaces a connection without a session. Behind a TCP balancer, the client's address is the one that the balancer
 * names. gRPC is in `transport/agent`. Implements `docs/contract/agent-protocol.md#the-listener`.
 */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { plainIp } from '../../kernel/addresses.js';
import { withDeadline } from '../../kernel/background.js';
import { addressRanges } from '../../kernel/cidr.js';
import type { Clock } from '../../kernel/clock.js';
import { errorText } from '../../kernel/errors.js';
import { formatHostPort } from '../../kernel/host-port.js';
import { limits } from '../../kernel/limits.js';
import { logsError, type Logger } from '../../kernel/logger.js';
import type { SampledLog } from '../../kernel/sampled-log.js';
import { createClosings, type Closed, type Closing } from './closings.js';
import { createConnectionTable, type ConnectionKinds, type ConnectionTable, type Entry } from './connection-table.js';
import { Connection, type AgentConnection, type SessionMarks } from './connection.js';
import { sniff, type Sniffed } from './sniff.js';
import { createMirroring, type Mirroring, type MetCounts } from './mirroring.js';
import { createReality, type Reality, type SharedHellos } from './reality/reality.js';
import type { RealitySettings } from './reality/settings.js';
import { tuning as realityTuning } from './reality/tuning.js';

/** Interval at which the time limits of connections are checked. */
const sweepMs = 200;

export interface AgentListenerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly maxConnections: number;
  /** CIDRs of TCP balancers: connections from there start with a PROXY protocol header. */
  readonly proxyFrom: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where connections closed for a fault are recorded. */
  readonly refusals: Pick<SampledLog, 'note'>;
}

interface ListenerOptions extends AgentListenerOptions {
  /** Undefined: agents speak h2c, and everything else is closed. */
  readonly reality?: RealitySettings | undefined;
  /** For REALITY, where several instances share a store. */
  readonly sharedHellos?: SharedHellos | undefined;
}

export interface ListenerStats {
  readonly accepted: number;
  /** Currently open, by kind. */
  readonly open: ConnectionKinds;
  /** Closed by the listener, by reason. */
  readonly closed: Closed;
  /** Counts of REALITY by outcome; undefined without it. */
  readonly met: MetCounts | undefined;
  /** Connections to the target of REALITY, open or being opened. */
  readonly targetConnections: number;
}

export interface Listener {
  /** `host:port`, IPv6 in brackets. */
  readonly address: string;
  stats(): ListenerStats;
  /** Accepts no new connections; the open ones stay. */
  stop(): void;
  /** Stops, waits up to `graceMs` for connections to close by themselves, then closes the rest. */
  close(graceMs: number): Promise<void>;
}

/**
 * Repeatedly closes connections that have used up their time, until stopped.
 * @param mirroring with REALITY, where silent peers are joined to a target instead
 */
function startSweep(
  table: ConnectionTable<Connection>,
  clock: Clock,
  mirroring: Pick<Mirroring, 'many'> | undefined,
  close: (entry: Entry<Connection>, reason: Closing) => void,
): NodeJS.Timeout {
  const sweep = setInterval(() => {
    const now = clock.monotonic();
    if (mirroring === undefined)
      closeWhile(table.longestSniffed, (since) => now - since > limits.agent.sniffMs, 'silent');
    else mirrorSilent(now);
    closeWhile(table.longestWithoutSession, (since) => now - since > limits.agent.withoutSessionMs, 'idle');
    // A visitor stays as long as the target lets him: he would notice a time limit that is not the target's.
    if (mirroring?.many() === true) {
      closeWhile(table.longestMirrored, (since) => now - since > realityTuning.mirroredMs, 'spent');
    }
    for (const entry of table.withoutSession()) {
      if (entry.value.isCostly?.() === true) close(entry, table.isMirrored(entry) ? 'spent' : 'costly');
    }
  }, sweepMs);
  const closeWhile = (
    next: () => Entry<Connection> | undefined,
    isOverdue: (since: number) => boolean,
    reason: Closing,
  ): void => {
    for (let entry = next(); entry !== undefined && isOverdue(entry.since); entry = next()) close(entry, reason);
  };

  /** With REALITY, silent peers are spliced to the target; only a balancer must send its header in time. */
  const mirrorSilent = (now: number): void => {
    for (let entry = table.longestSniffed(); entry !== undefined; entry = table.longestSniffed()) {
      if (now - entry.since <= limits.agent.sniffMs) return;
      entry.value.giveUpSniffing?.();
      if (table.longestSniffed() === entry) close(entry, 'silent');
    }
  };
  return sweep.unref();
}

export type AcceptAgent = (connection: AgentConnection) => void;

/** Notes the sessions of connections in the table. @param costly ends a connection that costs too much */
function marksOf(
  table: ConnectionTable<Connection>,
  clock: Clock,
  costly: (entry: Entry<Connection>) => void,
): SessionMarks {
  return {
    opened({ entry }) {
      if (entry !== undefined) table.sessionOpened(entry);
    },
    ended({ entry }) {
      if (entry !== undefined) table.sessionEnded(entry, clock.monotonic());
    },
    costly({ entry }) {
      if (entry !== undefined) costly(entry);
    },
  };
}

/** The accepted connections, from their first byte until they are handed over, joined to the target, or closed. */
function createConnections(options: ListenerOptions, reality: Reality | undefined, accept: AcceptAgent) {
  const { clock, logger, maxConnections, refusals } = options;
  const lookForH2c = options.reality === undefined || options.reality.allowH2c;
  const isBalancer = addressRanges(options.proxyFrom);
  /** Including those that are closed but still held by the operating system. */
  const sockets = new Set<Socket>();
  const table = createConnectionTable<Connection>();
  let accepted = 0;
  let onEmpty: (() => void) | undefined;

  const { end, closed } = createClosings(table, refusals);
  const marks = marksOf(table, clock, (entry) => end(entry, 'costly'));

  /**
   * The newcomer itself has no session, so there always is a connection to close; if it is the only one, it is refused.
   */
  const makesRoom = (newcomer: Entry<Connection>): boolean => {
    const expendable = table.expendable() ?? newcomer;
    end(expendable, expendable === newcomer ? 'refused' : 'evicted');
    return expendable !== newcomer;
  };

  const handOver = (entry: Entry<Connection>): void => {
    const { value: connection } = entry;
    table.sniffed(entry, connection.remoteAddress, clock.monotonic());
    accept(connection);
  };
  const atOnce = options.reality?.mirrored ?? realityTuning.mirrored;
  const mirroring = reality && createMirroring({ reality, atOnce, table, clock, refusals, close: end, handOver });

  const settle = (entry: Entry<Connection>, result: Sniffed): void => {
    const { value: connection } = entry;
    if (result.kind === 'gone') return connection.destroy();
    if (result.kind === 'no_proxy_header') return end(entry, result.kind);
    connection.remoteAddress = result.client ?? connection.remoteAddress;
    if (result.kind === 'h2c') {
      connection.socket.allowHalfOpen = false;
      handOver(entry);
    } else if (mirroring === undefined) end(entry, 'foreign');
    else void mirroring.mirror(entry);
  };

  return {
    table,
    /** Undefined without REALITY. */
    mirroring,
    /** Ends a connection, and counts and logs why. */
    end,
    take(socket: Socket): void {
      // The system knows a peer's address only while the peer is connected, so the address is read once and kept.
      const { remoteAddress } = socket;
      if (remoteAddress === undefined) return void socket.destroy();
      accepted += 1;
      const peer = plainIp(remoteAddress);
      const connection = new Connection(accepted, socket, peer, marks);
      const entry = table.add(connection, peer, clock.monotonic());
      connection.entry = entry;
      sockets.add(socket);
      // A reset by the peer is ordinary; without a listener the event would end the process.
      socket.on('error', (error) => logger.debug({ error: errorText(error) }, 'agent connection failed'));
      socket.once('close', () => {
        table.remove(entry);
        sockets.delete(socket);
        connection.noteClosed();
        if (sockets.size === 0) onEmpty?.();
      });
      if (table.size > maxConnections && !makesRoom(entry)) return;
      const giveUp = sniff(socket, { expectHeader: isBalancer(peer), lookForH2c }, (result) => settle(entry, result));
      if (reality !== undefined) connection.giveUpSniffing = giveUp;
    },
    stats: (targetConnections: number): ListenerStats => ({
      accepted,
      open: table.kinds(),
      closed: closed(),
      met: mirroring?.counts(),
      targetConnections,
    }),
    /** Ends the connections of the REALITY target. */
    endMirrored(): void {
      for (let entry = table.longestMirrored(); entry !== undefined; entry = table.longestMirrored()) {
        table.remove(entry);
        entry.value.destroy();
      }
    },
    /** Waits up to `graceMs` for all to close by themselves, then closes the rest. */
    async close(graceMs: number): Promise<void> {
      if (sockets.size === 0) return;
      const empty = new Promise<void>((resolve) => (onEmpty = resolve));
      if (graceMs > 0) await withDeadline(empty, graceMs);
      for (const socket of sockets) socket.destroy();
      await empty;
    },
  };
}

/**
 * Starts listening.
 * @param accept receives each connection that speaks h2c, in the clear or inside REALITY, unread; must not throw
 * @throws the operating system's error if the address cannot be bound
 */
export async function startListener(options: ListenerOptions, accept: AcceptAgent): Promise<Listener> {
  const { clock, logger } = options;
  const reality =
    options.reality &&
    createReality({ settings: options.reality, clock, speaksSecond: true, sharedHellos: options.sharedHellos });
  const connections = createConnections(options, reality, accept);
  const server = createServer(
    { noDelay: true, keepAlive: true, allowHalfOpen: reality !== undefined },
    connections.take,
  );
  const sweep = startSweep(connections.table, clock, connections.mirroring, connections.end);
  try {
    server.listen({ host: options.host, port: options.port, backlog: limits.agent.listenBacklog });
    await once(server, 'listening');
  } catch (error) {
    clearInterval(sweep);
    await reality?.close();
    throw error;
  }
  // For example, no file descriptor is left for the next connection; open connections stay.
  server.on('error', logsError(logger, 'agent listener error'));
  const bound = server.address() as AddressInfo;

  const stop = (): void => {
    if (server.listening) server.close();
  };
  return {
    address: formatHostPort({ host: bound.address, port: bound.port }),
    stats: () => connections.stats(reality?.targetConnections ?? 0),
    stop,
    async close(graceMs) {
      stop();
      // Before the target's side is closed, so that nobody mistakes that for a fault of the target.
      connections.endMirrored();
      await reality?.close();
      await connections.close(graceMs);
      clearInterval(sweep);
    },
  };
}

/**
 * An EventStoreDB for tests: the gRPC services of `event_store.client` that the client package calls, over real
 * sockets, answering like 23.10.8 (`transcripts.test.ts` checks that), with faults on demand. In memory, or in a folder
 * whose log survives kill -9. Without TLS, access rights, persistent subscriptions and scavenging.
 */
import { createServer, type AddressInfo, type Server as TcpServer, type Socket } from 'node:net';
import {
  Metadata,
  Server,
  ServerCredentials,
  status,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
} from '@grpc/grpc-js';
import { freePorts } from '../../../scripts/stack/process.js';
import { appendAnswer, deleteAnswer, parseAppend } from './append.js';
import { createBatchCall } from './batch-append.js';
import {
  callReset,
  handlerThrew,
  notLeader,
  notReady,
  Refusal,
  requireAppends,
  requireLeader,
  requireRights,
  statusOf,
} from './calls.js';
import { machineClock, type ServerClock } from './clock.js';
import { createFaults, type AppendFault, type Faults } from './faults.js';
import { createFreezer } from './freezable.js';
import { clusterInfo, supportedMethods } from './features.js';
import { openLogFile } from './log-file.js';
import { createLog, knownUntil, type Decision, type EventLog } from './log.js';
import { parseReadOptions } from './read-options.js';
import { readMessages } from './read.js';
import { featuresService, gossipService, streamsService } from './services.js';
import { subscriberOf, type WriteCall } from './subscriber.js';
import { createSubscriptions, tooSlow } from './subscriptions.js';
import type { Plain } from './wire.js';

export interface EventStoreDbServer {
  readonly url: string;
  readonly port: number;
  readonly faults: Faults;
  readonly log: EventLog;
  /** Appends since the start that were decided or refused by a fault. */
  appends(): number;
  /** How many answers are held. */
  held(): number;
  /** Sends the answers that are held. */
  release(): void;
  subscriptions(): number;
  /** Ends every subscription, as too slow or cleanly. @returns how many */
  dropSubscriptions(how: 'too_slow' | 'end'): number;
  /** The highest number of calls that were open at once. */
  mostCalls(): number;
  /** Refuses new connections and calls while open ones continue, like a server that is shutting down. */
  drain(): Promise<void>;
  /** Cuts every connection and refuses new ones until `listen`. */
  refuse(): Promise<void>;
  listen(): Promise<void>;
  cut(): void;
  /** Stops it like SIGSTOP: connections stay open and new ones are accepted, and nothing is read or sent. */
  freeze(): void;
  thaw(): void;
  close(): Promise<void>;
}

export interface ServerOptions {
  /** Without a folder the log is in memory only. */
  readonly folder?: string;
  readonly port?: number;
  /** The log of another server, which makes both nodes of one cluster. */
  readonly log?: EventLog;
  /** It can be frozen, for which its connections are slower. */
  readonly freezable?: boolean;
  /** The machine's, without it. */
  readonly clock?: ServerClock;
}

const commitTimeout = (): Refusal => new Refusal(status.ABORTED, 'Operation timed out: Commit phase timeout.');

/** How long open calls continue when the server shuts down. */
const drainMs = 5000;

/** @throws Error when the port is taken or the folder cannot be used */
export async function startEventStoreDb(options: ServerOptions = {}): Promise<EventStoreDbServer> {
  const file = options.folder === undefined ? undefined : openLogFile(options.folder);
  const { clock = machineClock } = options;
  const log = options.log ?? createLog((record) => file?.write(record), clock.now);
  for (const record of file?.records ?? []) log.restore(record);
  const faults = createFaults();
  const subscriptions = createSubscriptions(log, faults);
  const grpc = new Server({ 'grpc.max_concurrent_streams': 100, 'grpc.max_receive_message_length': 17 * 1024 * 1024 });
  const timers = new Set<NodeJS.Timeout>();
  const sockets = new Set<Socket>();
  const freezer = options.freezable === true ? createFreezer() : undefined;
  let appends = 0;
  let calls = 0;
  let mostCalls = 0;
  // Not an ephemeral port: the server may go away and must come back on the same port.
  const [free = 0] = await freePorts(1);
  let port = options.port ?? free;

  const later = (ms: number, work: () => void): void => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      work();
    }, ms);
    timers.add(timer);
  };
  const held: (() => void)[] = [];
  const hold = (answer: () => void): void => void held.push(answer);
  const nextFault = (): AppendFault | undefined => {
    appends += 1;
    // The batch path answers so; the classic call was refused before.
    if (faults.notReady) return { kind: 'not_ready' };
    return faults.appends.shift() ?? faults.choose?.();
  };
  const count = (call: { on(event: 'close', listener: () => void): unknown }): void => {
    calls += 1;
    mostCalls = Math.max(mostCalls, calls);
    call.on('close', () => {
      calls -= 1;
    });
  };
  const cut = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
  };

  function read(call: WriteCall): void {
    count(call);
    if (faults.silentReads) return;
    call.sendMetadata(new Metadata());
    void (async () => {
      try {
        requireRights(call.metadata, faults);
        const parsed = parseReadOptions(call.request);
        if (parsed.count === undefined) {
          // A follower serves them, whatever they require.
          if (faults.notReady) requireLeader(call.metadata, faults);
          subscriptions.start(subscriberOf(call), parsed);
          return;
        }
        requireLeader(call.metadata, faults);
        // While a leader that is cut off still answers as one, nobody else writes.
        const asLeader = call.metadata.get('requires-leader').length > 0;
        const messages = readMessages(asLeader ? log : knownUntil(log, faults.cutOffAt), parsed);
        if (messages === undefined) return;
        const reader = subscriberOf(call);
        for (const message of messages) {
          if (reader.closed()) return;
          await reader.write(message);
        }
        reader.end();
      } catch (error) {
        call.emit('error', statusOf(error));
      }
    })();
  }

  function batchAppend(call: ServerDuplexStream<Plain, Plain>): void {
    count(call);
    let open = true;
    // As on the real server, an answer takes a moment, so that a half-close that comes with its request precedes it.
    const pending: Plain[] = [];
    const answer = (): void => {
      for (const message of pending.splice(0)) if (open) call.write(message);
    };
    const end = (error?: Refusal): void => {
      answer();
      if (!open) return;
      open = false;
      if (error === undefined) call.end();
      else call.emit('error', statusOf(error));
    };
    const peer = {
      send(message: Plain) {
        pending.push(message);
        // The immediate lets in what has already arrived when the timer is late.
        setTimeout(() => setImmediate(answer), 5);
      },
      end,
      cut,
    };
    const ahead = { ...clock, now: () => clock.now() + faults.clockAheadMs };
    const served = createBatchCall(log, peer, nextFault, later, hold, ahead);
    call.on('data', (message: Plain) => {
      try {
        requireRights(call.metadata, faults);
        if (!faults.notReady) requireLeader(call.metadata, faults);
        served.frame(message);
      } catch (error) {
        end(error instanceof Refusal ? error : handlerThrew());
      }
    });
    // Half-closing ends the call only when an answer was still pending.
    call.on('end', () => {
      if (pending.length > 0) end();
    });
    call.on('cancelled', () => {
      open = false;
      served.close();
    });
    call.on('error', () => undefined);
  }

  function append(call: ServerReadableStream<Plain, Plain>, answer: sendUnaryData<Plain>): void {
    count(call);
    const received: Plain[] = [];
    call.on('data', (message: Plain) => received.push(message));
    const settle = (): void => {
      // A cut connection ends the stream in the middle of the events: none of them may be written.
      if (call.cancelled) return;
      try {
        requireRights(call.metadata, faults);
        requireAppends(faults);
        requireLeader(call.metadata, faults);
        const parsed = parseAppend(received);
        const decide = (): Decision => log.append(parsed.stream, parsed.expected, parsed.events);
        const write = (): Plain => appendAnswer(decide(), parsed);
        const wrong = nextFault();
        switch (wrong?.kind) {
          case undefined:
            return answer(null, write());
          case 'no_position': {
            const decision = decide();
            const hidden = decision.kind === 'success' ? { ...decision, position: undefined } : decision;
            return answer(null, appendAnswer(hidden, parsed));
          }
          case 'silent':
            return;
          case 'answer_lost':
            write();
            return;
          case 'deadline':
          case 'commit_timeout':
            if (wrong.kind === 'commit_timeout') later(wrong.laterMs, write);
            throw commitTimeout();
          case 'no_quorum':
            return later(wrong.ms, () => answer(statusOf(commitTimeout())));
          case 'not_ready':
            return later(wrong.ms ?? 0, () => answer(statusOf(notReady())));
          case 'not_leader':
            throw notLeader(wrong.host, wrong.port);
          case 'cut':
            if (wrong.written) write();
            return cut();
          case 'late':
            return later(wrong.ms, () => answer(null, write()));
          case 'answer_late': {
            const written = write();
            return later(wrong.ms, () => answer(null, written));
          }
          case 'held': {
            const written = write();
            return hold(() => answer(null, written));
          }
          case 'end_call':
          case 'reset_call':
            if (wrong.kind === 'reset_call' && wrong.written) write();
            throw callReset();
          default: {
            const never: never = wrong;
            throw new Error(`unknown fault ${JSON.stringify(never)}`);
          }
        }
      } catch (error) {
        answer(statusOf(error));
      }
    };
    call.on('end', () => setImmediate(settle));
  }

  const unary =
    (work: (call: ServerUnaryCall<Plain, Plain>) => Plain | undefined) =>
    (call: ServerUnaryCall<Plain, Plain>, answer: sendUnaryData<Plain>): void => {
      try {
        const message = work(call);
        if (message !== undefined) answer(null, message);
      } catch (error) {
        answer(statusOf(error));
      }
    };
  const deletion = (kind: 'Delete' | 'Tombstone') =>
    unary((call) => {
      requireLeader(call.metadata, faults);
      return deleteAnswer(log, call.request, kind);
    });

  grpc.addService(streamsService, {
    read,
    append,
    batchAppend,
    delete: deletion('Delete'),
    tombstone: deletion('Tombstone'),
  });
  grpc.addService(featuresService, {
    getSupportedMethods: unary(() => {
      if (faults.featuresFail !== undefined) throw new Refusal(faults.featuresFail.code, faults.featuresFail.details);
      return faults.silentFeatures ? undefined : supportedMethods;
    }),
  });
  grpc.addService(gossipService, {
    read: unary((call) => {
      if (faults.silentGossip) return undefined;
      const headers = new Metadata();
      // Kestrel puts its time on every answer.
      if (faults.dates) headers.set('date', new Date(Date.now() + faults.clockAheadMs).toUTCString());
      else headers.set('date', 'not told');
      call.sendMetadata(headers);
      return clusterInfo('127.0.0.1', port, faults);
    }),
  });

  const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
  let tcp: TcpServer | undefined;
  const listen = async (): Promise<void> => {
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      socket.on('error', () => undefined);
      injector.injectConnection(freezer?.wrap(socket) ?? socket);
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    port = (server.address() as AddressInfo).port;
    tcp = server;
  };
  const refuse = async (): Promise<void> => {
    const server = tcp;
    tcp = undefined;
    const closed = server === undefined ? undefined : new Promise((resolve) => server.close(resolve));
    cut();
    await closed;
  };
  await listen();

  return {
    url: `esdb://127.0.0.1:${port}?tls=false`,
    port,
    faults,
    log,
    appends: () => appends,
    held: () => held.length,
    release() {
      for (const answer of held.splice(0)) answer();
    },
    subscriptions: () => subscriptions.open(),
    dropSubscriptions: (how) => subscriptions.drop(how === 'end' ? undefined : tooSlow()),
    mostCalls: () => mostCalls,
    async drain() {
      const server = tcp;
      tcp = undefined;
      server?.close();
      injector.drain(drainMs);
    },
    refuse,
    listen,
    cut,
    freeze() {
      if (freezer === undefined) throw new Error('this server was not started as one that can be frozen');
      freezer.freeze();
    },
    thaw: () => freezer?.thaw(),
    async close() {
      freezer?.thaw();
      for (const timer of timers) clearTimeout(timer);
      await refuse();
      grpc.forceShutdown();
      file?.close();
    },
  };
}

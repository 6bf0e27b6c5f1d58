/**
 * REALITY on a connection: everything the client sends also goes to the target, until its ClientHello shows that it is
 * an agent; then this service completes the handshake. Everybody but an agent talks to the target, and never to this
 * service. The listener accepts, counts and closes connections. Implements
 * `docs/contract/agent-protocol.md#the-listener` and `docs/reality.md`.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../../kernel/clock.js';
import { withDeadline } from '../../../kernel/background.js';
import { readClientHello, type ClientHello } from '../../../channel/tls/client-hello.js';
import { group } from '../../../channel/tls/codes.js';
import { createHelloCollector } from '../../../channel/tls/hello-collector.js';
import type { ServerHello } from '../../../channel/tls/server-hello.js';
import { createTemporaryIdentity } from '../../../channel/reality/certificate.js';
import { createAuthenticator, createHelloMemory, type HelloMemory, type StrangerReason } from './authenticate.js';
import { prepareAnswer, sharesFor, type PreparedAnswer } from './handshake.js';
import { createKnownTarget, type KnownTarget } from './known-target.js';
import { offeredBy } from './probe.js';
import type { RealityServer } from './settings.js';
import { splice } from './splice.js';
import { createTarget } from './target.js';
import { createTargetFlightReader, type TargetFlight } from './target-flight.js';
import { tuning } from './tuning.js';

/** From now on, the client and the target talk to each other. */
type Joined =
  | { readonly kind: 'stranger'; readonly reason: StrangerReason }
  /** An agent that gets the target, because this service cannot imitate the target's answer. */
  | { readonly kind: 'unusable_target' };

type Finished =
  /** An agent; `stream` carries the bytes inside. */
  | { readonly kind: 'agent'; readonly stream: Duplex }
  /** An agent that did not finish the handshake; the connection is closed. */
  | { readonly kind: 'unfinished' };

export type Met =
  | Joined
  | Finished
  /** The target cannot be reached; the connection is closed. */
  | { readonly kind: 'no_target' };

/** An agent, and the answer it gets instead of the target's. */
interface Answered {
  readonly kind: 'answered';
  readonly hello: ClientHello;
  readonly answer: PreparedAnswer;
}

const other: Joined = { kind: 'stranger', reason: 'other' };

interface RealityOptions {
  readonly settings: RealityServer;
  readonly clock: Clock;
  /** Whether writes to a client wait for its first bytes, as a web server's do. */
  readonly speaksSecond: boolean;
  /** Hellos seen by other instances; absent where there are none. */
  readonly sharedHellos?: SharedHellos | undefined;
  /** State that outlives this server, because it belongs to its target and the process; by default its own. */
  readonly shared?: { readonly known: KnownTarget; readonly hellos: HelloMemory };
}

/** The agents' hellos that any instance has seen. */
export interface SharedHellos {
  /**
   * Notes a hello by its random. Never rejects.
   * @param until milliseconds since the Unix epoch: until then it must be remembered
   * @returns whether another instance has noted it before; false when that cannot be known
   */
  seen(random: Buffer, until: number): Promise<boolean>;
}

export type Reality = ReturnType<typeof createReality>;

export function createReality({ settings, clock, speaksSecond, sharedHellos, shared }: RealityOptions) {
  const target = createTarget(settings.target);
  const authenticate = createAuthenticator(settings, shared?.hellos ?? createHelloMemory(clock));
  const identity = createTemporaryIdentity();
  const watchMs = settings.probeMs ?? tuning.probeMs;
  const known = shared?.known ?? createKnownTarget({ target, serverNames: settings.serverNames, clock, watchMs });

  /** The group that the target chose last, and so will probably choose next. */
  let likely: ServerHello['group'] = group.x25519MlKem768;

  /** Whether another instance has seen the hello. May take no longer than a target's answer. */
  const seenElsewhere = async ({ random }: ClientHello): Promise<boolean> => {
    if (sharedHellos === undefined) return false;
    const until = clock.now() + 2 * settings.maxTimeDiffMs;
    return (await withDeadline(sharedHellos.seen(random, until), tuning.sharedHellosMs)) === true;
  };

  /** Finds out whose connection it is. @param said collects the target's bytes so far, which belong to the client */
  const judge = async (client: Socket, server: Socket, said: Buffer[]): Promise<Joined | Answered> => {
    const hello = await readHello(client, server, said);
    if (hello === undefined) return other;
    const verdict = authenticate(hello, clock.now());
    if (verdict.kind === 'stranger') return verdict;
    const reading = readFlight(server, said);
    // Computed while the target answers, so that an agent waits no longer than a stranger.
    const shares = sharesFor(hello);
    shares(likely);
    const [flight, seen] = await Promise.all([reading, seenElsewhere(hello)]);
    if (seen) return { kind: 'stranger', reason: 'replayed' };
    if (flight !== undefined) likely = flight.serverHello.group;
    // When a client leaves, the target's answer ends through no fault of the target.
    if (client.destroyed) return other;
    const answer = flight && prepareAnswer(hello, flight, verdict.authKey, { identity, speaksSecond, shares });
    if (answer === undefined) {
      known.failed();
      return { kind: 'unusable_target' };
    }
    known.served(nameOf(hello));
    return { kind: 'answered', hello, answer };
  };

  const complete = async (client: Socket, server: Socket, { hello, answer }: Answered): Promise<Finished> => {
    const stream = await answer.complete(client, server, () =>
      known.lengths(nameOf(hello), offeredBy(hello.protocols), answer.suite.hash),
    );
    return stream === undefined ? { kind: 'unfinished' } : { kind: 'agent', stream };
  };

  return {
    /**
     * Handles a client, and owns its socket until it is closed or handed over: a stranger is joined to the target until
     * one of them ends. Never rejects.
     * @param client paused, and created with `allowHalfOpen`
     * @param tell called once with the outcome; must not throw
     */
    async meet(client: Socket, tell: (met: Met) => void): Promise<void> {
      const server = await target.dial(client);
      if (server === undefined) {
        if (!client.destroyed) known.failed();
        tell(client.destroyed ? other : { kind: 'no_target' });
        client.destroy();
        return;
      }
      let isAgent = false;
      try {
        const said: Buffer[] = [];
        const judged = await judge(client, server, said);
        if (judged.kind === 'answered') {
          const met = await complete(client, server, judged);
          isAgent = met.kind === 'agent';
          tell(met);
        } else {
          tell(judged);
          for (const bytes of said) client.write(bytes);
          await splice(client, server);
        }
      } finally {
        server.destroy();
        if (!isAgent) client.destroy();
      }
    },
    /** Connections to the target, open or being opened: one per client, plus visits of the service. */
    get targetConnections(): number {
      return target.open;
    },
    /** Closes all connections to the target, and with them those of mirrored clients; agents' connections stay. */
    async close(): Promise<void> {
      target.close();
      if (shared === undefined) await known.close();
    },
  };
}

const nameOf = ({ serverName }: ClientHello): string => serverName?.toLowerCase() ?? '';

/**
 * Passes on the client's bytes until it is clear whether they start with a ClientHello.
 * @param said collects what the target sends meanwhile, normally nothing
 * @returns undefined for anything else. Both sockets are paused again
 */
function readHello(client: Socket, server: Socket, said: Buffer[]): Promise<ClientHello | undefined> {
  // A client may have ended while the target was dialled: a paused socket without data emits its end only once.
  if (client.readableEnded) return Promise.resolve(undefined);
  const collector = createHelloCollector(tuning.clientHelloRecords);
  return new Promise((resolve) => {
    const done = (hello: ClientHello | undefined): void => {
      for (const socket of [client, server]) {
        socket.off('end', other);
        socket.off('close', other);
        socket.pause();
      }
      client.off('data', hear);
      server.off('data', answered);
      resolve(hello);
    };
    const other = (): void => done(undefined);
    const hear = (bytes: Buffer): void => {
      server.write(bytes);
      const hello = collector.push(bytes);
      if (hello === 'incomplete') return;
      // A client sends nothing more before it has an answer.
      done(hello === 'other' || hello.followed ? undefined : readClientHello(hello.message));
    };
    const answered = (bytes: Buffer): void => {
      said.push(bytes);
      done(undefined);
    };
    for (const socket of [client, server]) {
      socket.on('end', other);
      socket.on('close', other);
    }
    client.on('data', hear);
    server.on('data', answered);
    client.resume();
    server.resume();
  });
}

/**
 * Reads the target's first flight.
 * @param said collects everything the target sends
 * @returns undefined if it cannot be used, or takes too long. The socket is paused again
 */
function readFlight(server: Socket, said: Buffer[]): Promise<TargetFlight | undefined> {
  const reader = createTargetFlightReader();
  return new Promise((resolve) => {
    const done = (flight: TargetFlight | undefined): void => {
      clearTimeout(timer);
      server.off('data', hear);
      server.off('end', none);
      server.off('close', none);
      server.pause();
      resolve(flight);
    };
    const none = (): void => done(undefined);
    const timer = setTimeout(none, tuning.targetFlightMs);
    const hear = (bytes: Buffer): void => {
      said.push(bytes);
      const flight = reader.push(bytes);
      if (flight !== 'incomplete') done(flight === 'unusable' ? undefined : flight);
    };
    server.on('data', hear);
    server.on('end', none);
    server.on('close', none);
    server.resume();
  });
}

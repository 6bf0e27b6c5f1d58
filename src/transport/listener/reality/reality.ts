/**
 * REALITY on a connection: everything that the client says goes to the target as well, until its ClientHello shows that it is
 * an agent; then this service completes the handshake. Whoever is no agent talks with the target, and never with this
 * service. Not the listener, which accepts, counts and closes connections.
 * Implements `docs/contract/agent-protocol.md#the-listener` and `docs/reality.md`.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../../kernel/clock.js';
import type { ClientHello } from '../../../tls/client-hello.js';
import { createTemporaryIdentity } from '../../../reality/certificate.js';
import { learnAfterHandshake } from './after-handshake.js';
import { createAuthenticator } from './authenticate.js';
import type { StrangerReason } from './authenticate.js';
import { createHelloCollector } from './hello-collector.js';
import { prepareAnswer } from './handshake.js';
import type { PreparedAnswer } from './handshake.js';
import { offeredBy } from './probe.js';
import type { RealitySettings } from './settings.js';
import { splice } from './splice.js';
import { createTarget } from './target.js';
import { createTargetFlightReader } from './target-flight.js';
import type { TargetFlight } from './target-flight.js';
import { tuning } from './tuning.js';

export type Met =
  /** An agent; `stream` carries what it says inside. */
  | { readonly kind: 'agent'; readonly stream: Duplex }
  /** The client and the target talk with each other from now on. */
  | { readonly kind: 'stranger'; readonly reason: StrangerReason }
  /** An agent that meets the target, because the target's answer is none that this service can give. */
  | { readonly kind: 'unusable_target' }
  /** The target cannot be reached; the connection is closed. */
  | { readonly kind: 'no_target' }
  /** An agent that did not finish the handshake; the connection is closed. */
  | { readonly kind: 'unfinished' };

export interface Reality {
  /** Meets a client whose socket is paused and was made with `allowHalfOpen`. Never rejects. */
  meet(client: Socket): Promise<Met>;
  /** Ends what is learned about the target; the connections stay. */
  close(): Promise<void>;
}

interface RealityOptions {
  readonly settings: RealitySettings;
  readonly clock: Clock;
}

export function createReality({ settings, clock }: RealityOptions): Reality {
  const target = createTarget(settings.target);
  const authenticate = createAuthenticator(settings);
  const identity = createTemporaryIdentity();
  const afterHandshake = learnAfterHandshake(settings, target, clock, settings.probeMs ?? tuning.probeMs);

  /** Both sockets are paused; what the target has said so far goes first. */
  const introduce = (client: Socket, server: Socket, said: readonly Buffer[]): void => {
    for (const bytes of said) client.write(bytes);
    splice(client, server);
  };

  const meetAgent = async (
    client: Socket,
    server: Socket,
    hello: ClientHello,
    authKey: Buffer,
    said: Buffer[],
  ): Promise<Met> => {
    const flight = await readFlight(server, said);
    const answer: PreparedAnswer | undefined = flight && prepareAnswer(hello, flight, authKey, identity);
    if (answer === undefined) {
      introduce(client, server, said);
      return { kind: 'unusable_target' };
    }
    server.destroy();
    const name = hello.serverName?.toLowerCase() ?? '';
    const stream = await answer.complete(client, () => afterHandshake.lengths(name, offeredBy(hello.protocols)));
    return stream === undefined ? { kind: 'unfinished' } : { kind: 'agent', stream };
  };

  return {
    async meet(client) {
      const server = await target.dial();
      if (server === undefined || client.destroyed) {
        server?.destroy();
        client.destroy();
        return { kind: 'no_target' };
      }
      const said: Buffer[] = [];
      const hello = await readHello(client, server, said);
      if (hello === undefined) {
        introduce(client, server, said);
        return { kind: 'stranger', reason: 'other' };
      }
      const verdict = authenticate(hello, clock.now());
      if (verdict.kind === 'agent') return meetAgent(client, server, hello, verdict.authKey, said);
      introduce(client, server, said);
      return verdict;
    },
    async close() {
      target.close();
      await afterHandshake.close();
    },
  };
}

/**
 * Passes on what the client says until it is clear whether it begins with a ClientHello.
 * @param said takes what the target says meanwhile, which it does only if it knows better
 * @returns undefined for anything else. Both sockets are paused again
 */
function readHello(client: Socket, server: Socket, said: Buffer[]): Promise<ClientHello | undefined> {
  const collector = createHelloCollector();
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
      if (hello !== 'incomplete') done(hello === 'other' ? undefined : hello);
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
 * @param said takes all that the target says
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

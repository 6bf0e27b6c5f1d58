/** Lets gRPC run inside REALITY: the handshake follows the TCP connection, and HTTP/2 uses the stream inside. */
import type { Socket } from 'node:net';
import { ChannelCredentials, credentials } from '@grpc/grpc-js';
import type { Clock } from '../../kernel/clock.js';
import type { RealityAccess } from '../../channel/reality/endpoint.js';
import { openReality } from './handshake.js';

type SecureConnector = ReturnType<ChannelCredentials['_createSecureConnector']>;

/** How long the whole handshake may take. */
const handshakeMs = 8_000;

/** A class, because the library accepts nothing else. It counts as insecure, because h2c runs inside. */
class RealityCredentials extends ChannelCredentials {
  readonly #access: RealityAccess;
  readonly #clock: Clock;

  constructor(access: RealityAccess, clock: Clock) {
    super();
    this.#access = access;
    this.#clock = clock;
  }

  override _isSecure(): boolean {
    return false;
  }

  override _equals(other: ChannelCredentials): boolean {
    return other === this;
  }

  override _createSecureConnector(...of: Parameters<ChannelCredentials['_createSecureConnector']>): SecureConnector {
    const plain = credentials.createInsecure()._createSecureConnector(...of);
    return {
      waitForReady: () => plain.waitForReady(),
      getCallCredentials: () => plain.getCallCredentials(),
      destroy: () => plain.destroy(),
      connect: async (socket) => {
        const opened = await openReality(socket, this.#access, this.#clock, handshakeMs);
        if (!opened.ok) throw new Error(`REALITY: ${opened.error}`);
        // HTTP/2 accepts any stream; the library's type is narrower than its code.
        return { socket: opened.value as Socket, secure: false };
      },
    };
  }
}

export function realityCredentials(access: RealityAccess, clock: Clock): ChannelCredentials {
  return new RealityCredentials(access, clock);
}

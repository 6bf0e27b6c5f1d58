/**
 * Closes the stream of one session: the last SessionClose, the status, and a forced close for a peer that does not take
 * them. Implements `docs/contract/agent-protocol.md#control` ("a peer that does not read is cut at the socket").
 */
import { ServicePayload } from '../../gen/svc/control/v1/session.js';
import { limits } from '../../kernel/limits.js';
import type { AgentStream } from './agent-stream.js';
import type { CloseReason } from './close-reasons.js';
import type { Outbox } from './outbox.js';
import { tuning } from './tuning.js';

export interface SessionClosing {
  /** @param proven false: the peer has not shown that it has the keys, so it gets the bare status */
  begin(reason: CloseReason, proven: boolean): void;
  /** The stream is over. */
  gone(): void;
  /** Resolves when the stream is over. */
  readonly closed: Promise<void>;
}

/** A class, because there is one for each agent: see `src/channel/noise/cipher-state.ts`. */
class Closing implements SessionClosing {
  readonly #stream: AgentStream;
  readonly #outbox: Outbox;
  #forcedClose: NodeJS.Timeout | undefined;
  #resolveClosed: () => void = () => undefined;
  readonly closed: Promise<void>;

  constructor(stream: AgentStream, outbox: Outbox) {
    this.#stream = stream;
    this.#outbox = outbox;
    this.closed = new Promise<void>((resolve) => {
      this.#resolveClosed = resolve;
    });
  }

  begin(reason: CloseReason, proven: boolean): void {
    const close = proven ? reason.close : undefined;
    this.#outbox.finish(
      close === undefined ? undefined : ServicePayload.encode({ payload: { $case: 'close', value: close } }).finish(),
      reason.status,
    );
    const revoked = reason.cause === 'revoked';
    const kill = (): void => this.#stream.kill();
    this.#forcedClose = setTimeout(kill, revoked ? tuning.revokedFlushMs : limits.agent.closeGraceMs);
    // A revoked node keeps no connection, even if it reads: it is cut once the status has been sent.
    if (revoked) void this.closed.then(() => setTimeout(kill, tuning.revokedLingerMs));
  }
  gone(): void {
    clearTimeout(this.#forcedClose);
    this.#outbox.discard();
    this.#resolveClosed();
  }
}

export function createSessionClosing(stream: AgentStream, outbox: Outbox): SessionClosing {
  return new Closing(stream, outbox);
}

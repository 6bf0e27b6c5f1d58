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

interface SessionClosing {
  /** @param proven false: the peer has not shown that it has the keys, so it gets the bare status */
  begin(reason: CloseReason, proven: boolean): void;
  /** The stream is over. */
  gone(): void;
  /** Resolves when the stream is over. */
  readonly closed: Promise<void>;
}

export function createSessionClosing(stream: AgentStream, outbox: Outbox): SessionClosing {
  let forcedClose: NodeJS.Timeout | undefined;
  let resolveClosed: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => {
    resolveClosed = resolve;
  });

  return {
    begin(reason, proven) {
      const close = proven ? reason.close : undefined;
      outbox.finish(
        close === undefined ? undefined : ServicePayload.encode({ payload: { $case: 'close', value: close } }).finish(),
        reason.status,
      );
      const revoked = reason.cause === 'revoked';
      forcedClose = setTimeout(() => stream.kill(), revoked ? tuning.revokedFlushMs : limits.agent.closeGraceMs);
      // A revoked node keeps no connection, even if it reads: it is cut once the status has been sent.
      if (revoked) void closed.then(() => setTimeout(() => stream.kill(), tuning.revokedLingerMs));
    },
    gone() {
      clearTimeout(forcedClose);
      outbox.discard();
      resolveClosed();
    },
    closed,
  };
}

/**
 * Sessions that follow each other without a gap: opens the first, replaces each before its keys are too old, and changes to
 * another connection where that is needed. `session-loop.ts` connects anew after a loss. Implements the agent's side of
 * `docs/contract/agent-protocol.md#rekey`.
 */
import { SessionCloseReason } from '../../gen/svc/control/v1/session.js';
import { sleep, withFirstOf } from '../../kernel/background.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import { backoff } from '../../kernel/retry.js';
import type { ControlClient } from './client.js';
import type { OpenedUnder, PskChoice } from './psk-choice.js';
import type { ConnectionEnd } from './reconnect.js';
import type { Session } from './session.js';

/** An attached session. */
export interface Live {
  readonly session: Pick<Session, 'close'>;
  readonly ended: Promise<ConnectionEnd>;
  /** When it is to be replaced. */
  readonly rekeyMs: number;
  /** Aborts when it is to be replaced at once, by one over a newer connection. */
  readonly renewed: AbortSignal;
}

export interface ConnectionParts {
  connect(): ControlClient;
  readonly open: PskChoice['open'];
  /** Attaches an opened session. */
  attach(opened: OpenedUnder): Live;
  /** Waits between two tries, or until one of the signals aborts. */
  pause(ms: number, signals: readonly AbortSignal[]): Promise<void>;
  /** A session has replaced another. */
  onRekeyed(): void;
  readonly stopped: AbortSignal;
  readonly logger: Logger;
  readonly random: () => number;
}

/** Resolves when a session has ended without another in its place. */
export async function runConnection(parts: ConnectionParts): Promise<ConnectionEnd> {
  const { open, attach, stopped } = parts;
  let client = parts.connect();
  try {
    const first = await open(client, stopped);
    if (!first.ok) return { kind: 'refused', ...first.error };
    let opened = first.value;
    for (;;) {
      const live = attach(opened);
      const next = await untilReplaced(live, client, parts);
      if (next.kind === 'ended') return next.end;
      // Make before break: the new session is open before the old one is closed. An old session closed with REKEY is
      // never superseded, and late messages on it are ignored.
      await live.session.close(next.kind === 'stop' ? SessionCloseReason.NORMAL : SessionCloseReason.REKEY);
      if (next.kind === 'stop') return { kind: 'lost', detail: 'stopped' };
      opened = next.opened;
      if (next.client !== client) client.close();
      client = next.client;
      parts.onRekeyed();
    }
  } finally {
    client.close();
  }
}

type Next =
  | { readonly kind: 'ended'; readonly end: ConnectionEnd }
  | { readonly kind: 'stop' }
  | { readonly kind: 'rekey'; readonly opened: OpenedUnder; readonly client: ControlClient };

/** Waits until the session ends, the agent stops, or a rekey has opened a new session, whichever comes first. */
async function untilReplaced(
  { ended, rekeyMs, renewed }: Live,
  own: ControlClient,
  { connect, open, pause, stopped, logger, random }: ConnectionParts,
): Promise<Next> {
  const lost = new AbortController();
  let end: ConnectionEnd | undefined;
  void ended.then((value) => {
    end = value;
    lost.abort();
  });
  return withFirstOf([stopped, lost.signal], async (over): Promise<Next> => {
    await sleep(rekeyMs, AbortSignal.any([over, renewed]));
    for (let failures = 0; !over.aborted; failures += 1) {
      const isRenewal = renewed.aborted;
      const client = isRenewal ? connect() : own;
      const replacement = await open(client, over);
      // While it was being opened, a session over a connection of its own may have been requested.
      const isInVain = over.aborted || (renewed.aborted && !isRenewal);
      if (replacement.ok && !isInVain) return { kind: 'rekey', opened: replacement.value, client };
      if (isRenewal) client.close();
      if (replacement.ok) {
        replacement.value.session.discard();
        continue;
      }
      logger.warn({ status: replacement.error.status, detail: replacement.error.detail }, 'rekey refused, will retry');
      await pause(backoff(limits.agentControl.reconnect, failures, random), isRenewal ? [over] : [over, renewed]);
    }
    return end === undefined ? { kind: 'stop' } : { kind: 'ended', end };
  });
}

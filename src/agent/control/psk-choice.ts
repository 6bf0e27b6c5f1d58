/**
 * Which PSK the agent opens a session under: the one in its identity file now, or the last good one while the service
 * refuses that. Keeps no file and sets no timer. Implements `docs/contract/rollouts.md#guided-rotation`.
 */
import type { AgentKeys } from '../../channel/noise/control-psk.js';
import { GrpcStatus } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import { err, ok, type Result } from '../../kernel/result.js';
import type { ControlClient, OpenedSession } from './client.js';
import type { OpenRefusal } from './opening.js';

/** Reads the PSKs of the identity file, the preferred one first; none without a file. Never rejects. */
export type ReadPsks = () => Promise<readonly AgentKeys[]>;

export interface OpenedUnder {
  readonly session: OpenedSession;
  readonly keys: AgentKeys;
}

export interface PskChoice {
  open(client: ControlClient, signal: AbortSignal): Promise<Result<OpenedUnder, OpenRefusal>>;
  /** The service has answered on a session: the PSK that it was opened under is good. */
  answered(keys: AgentKeys): void;
  isGood(keys: AgentKeys): boolean;
  /** Whether the identity file prefers a PSK other than the good one. */
  hasAnother(): Promise<boolean>;
}

export function createPskChoice(first: AgentKeys, read: ReadPsks, logger: Logger): PskChoice {
  let good = first;
  const isGood = ({ fingerprint }: AgentKeys): boolean => fingerprint === good.fingerprint;

  async function toTry(): Promise<readonly AgentKeys[]> {
    const [newest = good, ...former] = await read();
    const all = [newest, good, ...former];
    return all.filter(
      ({ fingerprint }, index) => all.findIndex((other) => other.fingerprint === fingerprint) === index,
    );
  }

  return {
    async open(client, signal) {
      let refusal: OpenRefusal = { status: GrpcStatus.UNAUTHENTICATED, detail: '' };
      for (const keys of await toTry()) {
        const opened = await client.open(signal, keys);
        if (opened.ok) return ok({ session: opened.value, keys });
        refusal = opened.error;
        if (refusal.status !== GrpcStatus.UNAUTHENTICATED) break;
        if (isGood(keys)) continue;
        logger.warn({ psk_fingerprint: keys.fingerprint }, 'the service refuses this PSK of the identity file');
      }
      return err(refusal);
    },
    answered(keys) {
      if (isGood(keys)) return;
      good = keys;
      logger.info({ psk_fingerprint: keys.fingerprint }, 'the service has taken the PSK of the identity file');
    },
    isGood,
    async hasAnother() {
      const [newest] = await read();
      return newest !== undefined && !isGood(newest);
    },
  };
}

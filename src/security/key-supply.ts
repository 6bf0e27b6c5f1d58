/**
 * Ids of resources that are about to be created, each with a data key that is durable already: whoever creates a resource with
 * a secret then waits for no flush before its command is decided. Makes only as many as were asked for lately, and shreds
 * what is not used; a crash leaves those that it held, which nothing refers to. Not for resources that exist, and not
 * the keys themselves (`keyring.ts`). Implements `docs/contract/domain.md#commands-and-events`.
 */
import { yieldToEventLoop } from '../kernel/background.js';
import { errorText } from '../kernel/errors.js';
import type { Ids } from '../kernel/ids.js';
import type { Logger } from '../kernel/logger.js';
import type { Keyring } from './keyring.js';

/** Held at most. A commit of the read store takes more than that. */
const maxHeld = 64;
/** For each one that is taken. */
const madePerTake = 2;
/** Made before the event loop gets a turn; to wrap a key takes some tens of microseconds. */
const madePerTurn = 8;
const defaultIdleMs = 60_000;

export interface NewResource {
  /** A new UUID, which nobody else gets. */
  readonly id: string;
  /** Of its data key. */
  readonly keyId: string;
}

export interface KeySupply {
  /** Undefined when none is held: the caller makes id and key itself. Each is given once. */
  take(): NewResource | undefined;
  /** Shreds the keys that were not used. */
  close(): Promise<void>;
}

export interface KeySupplyOptions {
  readonly keyring: Pick<Keyring, 'createKey' | 'shred'>;
  readonly ids: Ids;
  readonly logger: Logger;
  /** How long keys are held without being asked for, in milliseconds. */
  readonly idleMs?: number;
}

export function createKeySupply({ keyring, ids, logger, idleMs = defaultIdleMs }: KeySupplyOptions): KeySupply {
  const held: NewResource[] = [];
  let wanted = 0;
  let making: Promise<void> | undefined;
  let idle: NodeJS.Timeout | undefined;
  let closed = false;

  async function makeOne(): Promise<void> {
    const id = ids.next();
    held.push({ id, keyId: await keyring.createKey(id) });
  }

  async function make(count: number): Promise<void> {
    const all: Promise<void>[] = [];
    const causes: string[] = [];
    for (let made = 0; made < count && !closed; made += 1) {
      if (made > 0 && made % madePerTurn === 0) await yieldToEventLoop();
      // Handled at once: it may fail while the loop gives the event loop its turn.
      all.push(makeOne().catch((error: unknown) => void causes.push(errorText(error))));
    }
    await Promise.all(all);
    const [cause] = causes;
    // Whoever creates a resource now finds out and says so.
    if (cause !== undefined) logger.debug({ error: cause }, 'no data keys could be made ahead');
  }

  function refill(): void {
    if (closed || making !== undefined || held.length * 2 >= wanted) return;
    making = make(wanted - held.length).finally(() => {
      making = undefined;
    });
  }

  async function shredHeld(): Promise<void> {
    wanted = 0;
    await making;
    const outcomes = await Promise.allSettled(held.splice(0).map(({ keyId }) => keyring.shred(keyId)));
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined)
      logger.warn({ error: errorText(failed.reason) }, 'unused data keys could not be shredded');
  }

  return {
    take() {
      if (closed) return undefined;
      wanted = Math.min(maxHeld, wanted + madePerTake);
      clearTimeout(idle);
      idle = setTimeout(() => void shredHeld(), idleMs);
      idle.unref();
      const next = held.shift();
      refill();
      return next;
    },
    async close() {
      closed = true;
      clearTimeout(idle);
      await shredHeld();
    },
  };
}

/**
 * Tells the progress when the log's head is passed although nothing came: a subscription may stay silent about events
 * of streams that no read model uses, for ever. Only while somebody waits for a position. Implements `docs/contract/rest.md`
 * (`x-min-position`), on what `event-store.ts` promises of `caught_up`.
 */
import { sleep } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import type { EventStore, ResumePoint } from '../../storage/event-store.js';
import type { Progress } from './progress.js';
import { tuning } from '../tuning.js';

export interface HeadProbe {
  /** Somebody began to wait. */
  wake(): void;
  close(): Promise<void>;
}

export interface HeadProbeDeps {
  readonly eventStore: EventStore;
  readonly prefix: string;
  readonly progress: Progress;
  readonly logger: Logger;
  /** Up to where everything has been handled. */
  handled(): ResumePoint | 'start';
}

export function createHeadProbe(deps: HeadProbeDeps): HeadProbe {
  const { eventStore, prefix, progress, logger } = deps;
  const stop = new AbortController();
  let running: Promise<void> | undefined;

  /** Looks once whether anything lies between what has been handled and the head. */
  async function look(): Promise<void> {
    const after = deps.handled();
    const head = await eventStore.headPosition();
    if (head <= progress.position()) return;
    const enough = new AbortController();
    const signal = AbortSignal.any([stop.signal, enough.signal, AbortSignal.timeout(tuning.probeTimeoutMs)]);
    try {
      for await (const item of eventStore.subscribe({ prefix, after, signal })) {
        // Something came: the runner is about to get it too, and will say so itself.
        if (item.kind === 'events') return;
        if (item.kind === 'checkpoint') continue;
        progress.passed(head);
        return;
      }
    } finally {
      enough.abort();
    }
  }

  async function run(): Promise<void> {
    for (;;) {
      // Nearly always the event is on its way, and nobody waits any more after this.
      await sleep(tuning.probeEveryMs, stop.signal);
      if (stop.signal.aborted || !progress.awaited()) return;
      try {
        await look();
      } catch (error) {
        logger.debug({ error: errorText(error) }, 'the head of the log could not be asked');
      }
    }
  }

  return {
    wake() {
      if (stop.signal.aborted) return;
      running ??= run().finally(() => {
        running = undefined;
      });
    },
    async close() {
      stop.abort();
      await running;
    },
  };
}

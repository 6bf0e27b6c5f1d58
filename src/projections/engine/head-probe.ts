/**
 * Moves the progress to the log's head when nothing arrives: subscriptions do not report events of unused streams, so a caller
 * that waits for the position of such an event would wait in vain. Runs only while somebody waits. Implements
 * `docs/contract/rest.md#consistency`.
 */
import { sleep, withFirstOf } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import type { EventStore, ResumePoint } from '../../storage/event-store.js';
import type { Progress } from './progress.js';
import { tuning } from '../tuning.js';

export interface HeadProbe {
  /** Called when a caller begins to wait. */
  wake(): void;
  close(): Promise<void>;
}

export interface HeadProbeDeps {
  readonly eventStore: EventStore;
  /** The streams that the progress covers. */
  readonly streams: readonly string[];
  readonly progress: Progress;
  readonly logger: Logger;
  /** The point up to which everything is handled. */
  handled(): ResumePoint | 'start';
}

export function createHeadProbe(deps: HeadProbeDeps): HeadProbe {
  const { eventStore, streams, progress, logger } = deps;
  const stop = new AbortController();
  let running: Promise<void> | undefined;

  /** Checks once whether the log has anything between the handled point and its head. */
  async function look(): Promise<void> {
    const after = deps.handled();
    const head = await eventStore.headPosition();
    if (head <= progress.position()) return;
    await withFirstOf([stop.signal, AbortSignal.timeout(tuning.probeTimeoutMs)], async (signal) => {
      for await (const item of eventStore.subscribe({ streams, after, signal })) {
        // The runner is about to get these events too, and reports its progress itself.
        if (item.kind === 'events') return;
        if (item.kind === 'checkpoint') continue;
        progress.passed(head);
        return;
      }
    });
  }

  async function run(): Promise<void> {
    for (;;) {
      // The event is nearly always on its way and arrives during this pause.
      await sleep(tuning.probeEveryMs, stop.signal);
      if (stop.signal.aborted || !progress.awaited()) break;
      try {
        await look();
      } catch (error) {
        logger.debug({ error: errorText(error) }, 'the head of the log could not be read');
      }
    }
    // In the turn of the last look: the next caller begins to wait after it.
    running = undefined;
  }

  return {
    wake() {
      if (!stop.signal.aborted) running ??= run();
    },
    async close() {
      stop.abort();
      await running;
    },
  };
}

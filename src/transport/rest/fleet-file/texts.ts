/**
 * The texts of documents: read as plain values, and searched for the places of mistakes. A long text is read by a thread of its
 * own (`texts-worker.ts`), because that takes seconds in which nothing else would be answered; its value comes back in parts. To
 * look for places it is read again, which only mistakes cost. Implements `docs/contract/automation.md#the-fleet-as-a-file`,
 * the document and the limits.
 */
import { once } from 'node:events';
import { deserialize } from 'node:v8';
import type { Worker } from 'node:worker_threads';
import { withDeadline, yieldToEventLoop } from '../../../kernel/background.js';
import { ServiceError } from '../../../kernel/errors.js';
import type { Logger } from '../../../kernel/logger.js';
import { ThreadLostError, startThread, threadBeside } from '../../../kernel/worker-thread.js';
import type { Mistake } from '../checks/validation.js';
import { tuning } from '../tuning.js';
import { readJson } from './json-text.js';
import { readYaml } from './yaml-text.js';

interface ReadText {
  readonly value: unknown;
  /** `line:column path: sentence`, in the order of the text; the value is of no use when there are any. */
  readonly mistakes: readonly string[];
}

export interface Texts {
  /** @param caseless keys whose mappings have keys that may not differ by case alone @throws ServiceError `unavailable` */
  read(text: string, caseless: readonly string[]): Promise<ReadText>;
  /** Sentences about places of a text that was read, in its order. @throws ServiceError `unavailable` */
  sentences(text: string, mistakes: readonly Mistake[]): Promise<readonly string[]>;
}

/** What a thread is asked: the value of a text, or sentences about places of it. */
export type Question = { readonly text: string } & (
  { readonly caseless: readonly string[] } | { readonly places: readonly Mistake[] }
);

/** A part has some entries of one mapping or list of the document; it is the whole of what is no mapping. */
export type Answer = { readonly parts: readonly Uint8Array[] } | { readonly mistakes: readonly string[] };

export const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export function readText(text: string, caseless: readonly string[]): ReadText {
  const value = readJson(text);
  return value === undefined ? readYaml(text, caseless) : { value, mistakes: [] };
}

export const sentencesOf = (text: string, mistakes: readonly Mistake[]): readonly string[] =>
  readYaml(text, []).sentences(mistakes);

/** Reads while nothing else runs. @internal */
export const textsInPlace: Texts = {
  read: async (text, caseless) => readText(text, caseless),
  sentences: async (text, mistakes) => sentencesOf(text, mistakes),
};

const { longChars, withinMs, endMs, memoryMib } = tuning.documentTexts;
const resourceLimits = { maxOldGenerationSizeMb: memoryMib, stackSizeMb: 4 };

/** A text that is long is read by a thread. `close` fails the reading that is under way. */
export function createTexts(logger: Logger): Texts & { close(): void } {
  const closing = new AbortController();

  async function ask(question: Question): Promise<Answer> {
    const failed = new AbortController();
    const signal = AbortSignal.any([failed.signal, closing.signal, AbortSignal.timeout(withinMs)]);
    let worker: Worker | undefined;
    try {
      signal.throwIfAborted();
      const entry = threadBeside(import.meta.url, 'texts-worker');
      worker = startThread(entry, { workerData: question, resourceLimits, lost: (error) => failed.abort(error) });
      const [answer] = (await once(worker, 'message', { signal })) as [Answer];
      return answer;
    } catch (error) {
      if (!signal.aborted) throw error;
      const { reason } = signal as { readonly reason: unknown };
      if (reason instanceof ThreadLostError) logger.error({ error: reason.message }, 'a document could not be read');
      const message = closing.signal.aborted
        ? 'the service is stopping'
        : `the document was not read within ${withinMs / 1000} s and ${memoryMib} MiB; send it as several sets`;
      throw new ServiceError('unavailable', message);
    } finally {
      if (worker !== undefined) await withDeadline(worker.terminate(), endMs);
    }
  }

  return {
    async read(text, caseless) {
      if (text.length < longChars) return readText(text, caseless);
      const answer = await ask({ text, caseless });
      if ('mistakes' in answer) return { value: undefined, mistakes: answer.mistakes };
      return { value: await putTogether(answer.parts), mistakes: [] };
    },
    async sentences(text, places) {
      if (text.length < longChars) return sentencesOf(text, places);
      const answer = await ask({ text, places });
      return 'mistakes' in answer ? answer.mistakes : [];
    },
    close: () => closing.abort(),
  };
}

/** Other work has its turn between the parts. */
async function putTogether(parts: readonly Uint8Array[]): Promise<unknown> {
  const whole: Record<string, unknown> = {};
  for (const part of parts) {
    const some: unknown = deserialize(part);
    if (!isMapping(some)) return some;
    for (const [key, entries] of Object.entries(some)) {
      const before = whole[key];
      if (Array.isArray(before) && Array.isArray(entries)) before.push(...(entries as readonly unknown[]));
      else if (isMapping(before)) Object.assign(before, entries);
      else whole[key] = entries;
    }
    await yieldToEventLoop();
  }
  return whole;
}

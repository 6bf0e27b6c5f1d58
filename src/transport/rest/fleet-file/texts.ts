/**
 * Reads the texts of documents as plain values. A worker thread (`texts-worker.ts`) reads long ones, because that takes seconds,
 * and returns the value in parts. A text is read again to find the places of mistakes in its value. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`, the document and the limits.
 */
import { once } from 'node:events';
import { deserialize } from 'node:v8';
import { nameKey } from '../../../domain/resource/meta.js';
import { createTurns, withFirstOf, yieldToEventLoop } from '../../../kernel/background.js';
import { ServiceError, errorText } from '../../../kernel/errors.js';
import { nfc } from '../../../kernel/compare-text.js';
import { jsonFaults, type JsonFault } from '../../../kernel/json-text.js';
import { limits } from '../../../kernel/limits.js';
import type { Logger } from '../../../kernel/logger.js';
import { ThreadLostError, threadBeside, withThread } from '../../../kernel/worker-thread.js';
import type { Mistake } from '../schemas/validation.js';
import { tuning } from '../tuning.js';
import { sentence, type Path } from './mistake-places.js';
import { readYaml, type ReadText } from './yaml-text.js';
import { keyTwice, tooDeep } from './yaml-values.js';

/** The known keys of a document. */
export interface DocumentKeys {
  readonly known: readonly string[];
  /** Keys whose mappings are by name; names must differ in more than case. */
  readonly names: readonly string[];
}

export interface Texts {
  /** The value of a text; unknown keys have null. @throws ServiceError `payload_too_large`, `unavailable` */
  read(text: string, keys: DocumentKeys): Promise<ReadText>;
  /** Sentences about mistakes in the value, in the order of the text. @throws ServiceError as `read` */
  sentences(text: string, mistakes: readonly Mistake[]): Promise<readonly string[]>;
}

/** The question to a thread about a text that it gets in slices: its value, or sentences about mistakes in it. */
export type Question = { readonly chars: number } & Asked;
type Asked = { readonly keys: DocumentKeys } | { readonly mistakes: readonly Mistake[] };

/** Some entries of one mapping or list of the document, or the whole of another value. */
export type Answer = { readonly parts: readonly Uint8Array[] } | { readonly mistakes: readonly string[] };

export const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const { jsonChars, sliceChars, yamlChars, withinMs, memoryMib, values } = tuning.documentTexts;
const { nesting, mistakes: shown, placedJsonBytes, resources } = limits.fleetFile;

export function readText(text: string, keys: DocumentKeys): ReadText {
  return bounded(text, readJson(text, keys) ?? readYaml(text, keys.names), keys);
}

/** The value without unknown keys, with the faults of oversized entries. */
function bounded(text: string, read: ReadText, keys: DocumentKeys): ReadText {
  if (read.mistakes.length > 0 || !isMapping(read.value)) return read;
  const value = Object.fromEntries(
    Object.entries(read.value).map(([key, inner]) => [key, keys.known.includes(key) ? inner : null]),
  );
  return { value, mistakes: sentencesOf(text, tooLarge(value)) };
}

/**
 * Reads JSON, as `svcctl` sends it, a hundred times as fast as YAML. Undefined for any other text, and for a short one with a
 * mistake, whose place the YAML reader finds.
 */
function readJson(text: string, { names }: DocumentKeys): ReadText | undefined {
  if (!looksLikeJson(text)) return undefined;
  const sameKey = (key: string, above: () => Path): string => {
    const at = above();
    return at.length === 1 && names.includes(String(at[0])) ? nameKey(key) : nfc(key);
  };
  const faults = jsonFaults(text, { depth: nesting, values, entries: mostEntries, faults: shown, sameKey });
  if (faults.length > 0 && !isLong(text)) return undefined;
  // A value that exceeds its bounds is never built.
  const isBounded = faults.every(({ kind }) => kind === 'twice' || kind === 'reserved');
  const parsed = isBounded ? parsedJson(text) : {};
  return parsed && { value: parsed.value, mistakes: faults.map((fault) => sentence(fault.at, faultSentence(fault))) };
}

/** How many entries a list or mapping at a depth may have: the document and its sections may have more. */
const mostEntries = (depth: number): number => (depth <= 2 ? resources : tuning.bodies.entries);

const looksLikeJson = (text: string): boolean => /^\s{0,100}\{/.test(text);

const isLong = (text: string): boolean => text.length > placedJsonBytes || Buffer.byteLength(text) > placedJsonBytes;

function parsedJson(text: string): { readonly value?: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function faultSentence({ kind, at, before = '' }: JsonFault): string {
  switch (kind) {
    case 'twice':
      return keyTwice(String(at.at(-1)), before);
    case 'reserved':
      return 'not a field of this document';
    case 'too_deep':
      return tooDeep;
    case 'too_many':
      return `expected at most ${at.length === 0 ? `${values} values` : `${mostEntries(at.length + 1)} entries`}`;
  }
}

/** Mistakes of size: sections with too many entries, and entries larger than the body of a request. */
function tooLarge(document: Readonly<Record<string, unknown>>): readonly Mistake[] {
  const found: Mistake[] = [];
  for (const [section, inside] of Object.entries(document)) {
    if (typeof inside !== 'object' || inside === null) continue;
    const entries = Array.isArray(inside) ? [...inside.entries()] : Object.entries(inside);
    if (entries.length > resources) found.push({ at: [section], message: `expected at most ${resources} resources` });
    else for (const [key, entry] of entries) if (isTooLarge(entry)) found.push({ at: [section, key], message: small });
  }
  return found;
}

const small = `expected at most ${tuning.bodies.values} values, and ${tuning.bodies.entries} in one list or mapping`;

function isTooLarge(entry: unknown): boolean {
  let left: number = tuning.bodies.values;
  const fits = (value: unknown): boolean => {
    left -= 1;
    if (typeof value !== 'object' || value === null) return left >= 0;
    const inside: readonly unknown[] = Object.values(value);
    return inside.length <= tuning.bodies.entries && inside.every(fits);
  };
  return !fits(entry);
}

/** Sentences with line and column; in long JSON, with paths only. */
export function sentencesOf(text: string, mistakes: readonly Mistake[]): readonly string[] {
  if (mistakes.length === 0) return [];
  if (!looksLikeJson(text) || !isLong(text) || parsedJson(text) === undefined) {
    return readYaml(text, [], mistakes).mistakes;
  }
  return mistakes.slice(0, shown).map(({ at, message }) => sentence(at, message));
}

/** Reads without yielding. @internal */
export const textsInPlace: Texts = {
  read: async (text, keys) => readText(text, keys),
  sentences: async (text, mistakes) => sentencesOf(text, mistakes),
};

const thread = threadBeside(import.meta.url, 'texts-worker');
const resourceLimits = { maxOldGenerationSizeMb: memoryMib, stackSizeMb: 4 };

/** Reads long texts in a thread; `close` fails the current read. */
export function createTexts(logger: Logger): Texts & { close(): void } {
  const closing = new AbortController();

  async function ask(text: string, about: Asked): Promise<Answer> {
    const late = AbortSignal.timeout(withinMs);
    const workerData: Question = { chars: text.length, ...about };
    try {
      return await withFirstOf([closing.signal, late], (signal) =>
        withThread(thread, { workerData, resourceLimits, signal }, async (worker, ends) => {
          const turn = createTurns(tuning.turnMs);
          for (let from = 0; from < text.length; from += sliceChars) {
            worker.postMessage(text.slice(from, from + sliceChars));
            await turn();
          }
          const [answer] = (await once(worker, 'message', { signal: ends })) as [Answer];
          return answer;
        }),
      );
    } catch (error) {
      if (closing.signal.aborted) throw new ServiceError('unavailable', 'the service is stopping');
      if (error instanceof ThreadLostError ? !error.outOfMemory : !late.aborted) throw error;
      logger.warn({ error: errorText(error) }, 'a document took too much to read');
      const message = `document: it takes more than ${withinMs / 1000} s or ${memoryMib} MiB to read; send it as several sets`;
      throw new ServiceError('payload_too_large', message);
    }
  }

  return {
    async read(text, keys) {
      if (text.length <= yamlChars) return readText(text, keys);
      const read = text.length <= jsonChars ? readJson(text, keys) : undefined;
      if (read !== undefined) return bounded(text, read, keys);
      const answer = await ask(text, { keys });
      if ('mistakes' in answer) return { value: undefined, mistakes: answer.mistakes };
      return { value: await putTogether(answer.parts), mistakes: [] };
    },
    async sentences(text, mistakes) {
      if (text.length <= yamlChars) return sentencesOf(text, mistakes);
      const answer = await ask(text, { mistakes });
      return 'mistakes' in answer ? answer.mistakes : [];
    },
    close: () => closing.abort(),
  };
}

/** Joins the parts, and yields to other work between them. */
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

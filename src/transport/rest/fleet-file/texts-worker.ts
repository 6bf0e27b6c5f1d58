/** The program of the thread that reads one long document for `texts.ts` and then ends. */
import { serialize } from 'node:v8';
import { parentPort, workerData } from 'node:worker_threads';
import { isMapping, readText, sentencesOf, type Answer, type Question } from './texts.js';

const parent = parentPort;
if (parent === null) throw new Error('this program is started as a worker thread, not by itself');
const entriesOfPart = 250;
const charsOfPart = 64 * 1024;

// A text with a million mistakes would otherwise keep a million stacks.
Error.stackTraceLimit = 0;
const question = workerData as Question;
let received = '';
parent.on('message', (slice: string) => {
  received += slice;
  if (received.length < question.chars) return;
  const answer = answerTo(received);
  // An error here ends the thread and fails the read.
  parent.postMessage(answer, 'parts' in answer ? answer.parts.map(({ buffer }) => buffer) : []);
});

function answerTo(
  text: string,
): { readonly parts: readonly Uint8Array<ArrayBuffer>[] } | Exclude<Answer, { readonly parts: unknown }> {
  if ('mistakes' in question) return { mistakes: sentencesOf(text, question.mistakes) };
  const { value, mistakes } = readText(text, question.keys);
  if (mistakes.length > 0) return { mistakes };
  if (!isMapping(value)) return { parts: [serialize(value)] };
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for (const [key, entries] of Object.entries(value)) {
    for (const some of portionsOf(entries)) parts.push(serialize({ [key]: some }));
  }
  return { parts };
}

/** Splits a value into portions of a few entries, fewer of large ones; a value without entries is one portion. */
function* portionsOf(value: unknown): Generator<unknown> {
  if (isMapping(value)) {
    for (const some of portionsOf(Object.entries(value))) yield Object.fromEntries(some as [string, unknown][]);
    return;
  }
  if (!Array.isArray(value) || value.length === 0) return yield value;
  let portion: unknown[] = [];
  let chars = 0;
  for (const entry of value as readonly unknown[]) {
    portion.push(entry);
    chars += JSON.stringify(entry).length;
    if (portion.length < entriesOfPart && chars < charsOfPart) continue;
    yield portion;
    portion = [];
    chars = 0;
  }
  if (portion.length > 0) yield portion;
}

/** The program of the thread that reads one long text of a document for `texts.ts`, and ends. */
import { serialize } from 'node:v8';
import { parentPort, workerData } from 'node:worker_threads';
import type { Answer, Question } from './texts.js';
import { isMapping, readText, sentencesOf } from './texts.js';

if (parentPort === null) throw new Error('this program is started as a worker thread, not by itself');
const entriesOfPart = 250;

// An error here ends the thread and fails its question.
parentPort.postMessage(answerTo(workerData as Question));

function answerTo(question: Question): Answer {
  if ('places' in question) return { mistakes: sentencesOf(question.text, question.places) };
  const { value, mistakes } = readText(question.text, question.caseless);
  if (mistakes.length > 0) return { mistakes };
  if (!isMapping(value)) return { parts: [serialize(value)] };
  const parts: Uint8Array[] = [];
  for (const [key, entries] of Object.entries(value)) {
    for (const some of portionsOf(entries)) parts.push(serialize({ [key]: some }));
  }
  return { parts };
}

/** A few entries at a time; what has none is one portion. */
function* portionsOf(value: unknown): Generator<unknown> {
  if (Array.isArray(value)) {
    yield value.slice(0, entriesOfPart);
    for (let from = entriesOfPart; from < value.length; from += entriesOfPart)
      yield value.slice(from, from + entriesOfPart);
  } else if (isMapping(value)) {
    for (const some of portionsOf(Object.entries(value))) yield Object.fromEntries(some as [string, unknown][]);
  } else yield value;
}

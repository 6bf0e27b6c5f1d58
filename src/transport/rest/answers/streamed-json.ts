/**
 * Streams answers about all nodes: making the answer for 10,000 nodes at once would block everything else. Each slice
 * of nodes becomes text once the client has read the previous one, and the event loop is free in between. Implements
 * `docs/contract/domain.md#scale-the-model-is-built-for`.
 */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { yieldToEventLoop } from '../../../kernel/background.js';
import { tuning } from '../tuning.js';

/**
 * Sends the pieces of a JSON text as `data` of a success. A short answer is sent as a whole. A failure before the first chunk
 * is answered like any other; a later one cuts the connection, so that no client takes a part for the whole.
 */
export async function sendPieces(reply: FastifyReply, pieces: AsyncGenerator<string, void>): Promise<FastifyReply> {
  const chunks = inChunks(enveloped(pieces));
  const first = await chunks.next();
  const beginning = first.done === true ? '' : first.value;
  void reply.type('application/json; charset=utf-8');
  if (beginning.length < tuning.chunkChars) return reply.send(beginning);
  return reply.send(Readable.from(counted(reply.request, after(beginning, chunks))));
}

async function* enveloped(pieces: AsyncGenerator<string, void>): AsyncGenerator<string, void> {
  yield '{"success":true,"data":';
  yield* pieces;
  yield ',"error":null}';
}

/** Joins small pieces. Only the last chunk may be small. */
async function* inChunks(pieces: AsyncGenerator<string, void>): AsyncGenerator<string, void> {
  let chunk = '';
  for await (const piece of pieces) {
    chunk += piece;
    if (chunk.length < tuning.chunkChars) continue;
    yield chunk;
    chunk = '';
  }
  if (chunk !== '') yield chunk;
}

async function* after(beginning: string, chunks: AsyncGenerator<string, void>): AsyncGenerator<string, void> {
  yield beginning;
  yield* chunks;
}

/** Counts the bytes for the record of the request. */
async function* counted(request: FastifyRequest, chunks: AsyncGenerator<string, void>): AsyncGenerator<string, void> {
  for await (const chunk of chunks) {
    request.streamedBytes = (request.streamedBytes ?? 0) + Buffer.byteLength(chunk);
    yield chunk;
  }
}

/** The values in slices, with a turn of the event loop after each. */
async function* slicesOf<V>(values: readonly V[]): AsyncGenerator<readonly V[], void> {
  for (let from = 0; from < values.length; from += tuning.nodesPerSlice) {
    yield values.slice(from, from + tuning.nodesPerSlice);
    await yieldToEventLoop();
  }
}

/** A JSON object whose lists are made slice by slice. */
export async function* objectInPieces(value: object): AsyncGenerator<string, void> {
  let before = '{';
  for (const [name, field] of Object.entries(value)) {
    yield `${before}${JSON.stringify(name)}:`;
    if (Array.isArray(field)) yield* listInPieces(field, (slice) => slice);
    else yield JSON.stringify(field);
    before = ',';
  }
  yield '}';
}

/** A JSON list, made slice by slice of the values. */
export async function* listInPieces<V, T>(
  values: readonly V[],
  of: (slice: readonly V[]) => readonly T[],
): AsyncGenerator<string, void> {
  let before = '[';
  for await (const slice of slicesOf(values)) {
    for (const item of of(slice)) {
      // One piece for each item: a node may have thousands of listeners.
      yield before + JSON.stringify(item);
      before = ',';
    }
  }
  yield before === '[' ? '[]' : ']';
}

/**
 * Writes an archive into an empty installation: each event where it was in its stream, with its id, in the order of the
 * log, whole commands in one append. Cut off, it goes on where it stood: what is there already is recognised by revision
 * and id, and an append that is repeated is answered like its first try. Decides nothing and opens nothing.
 *
 * Where old events of a stream have expired, revisions that nobody has any more cannot be written: those of such a stream
 * count from 0 again. They are facts (sign-ins, what agents did), whose revisions nothing refers to.
 */
import type { RecordedEvent } from '../../kernel/event.js';
import { limits } from '../../kernel/limits.js';
import { eventBytes } from '../event-json.js';
import type { EventStore } from '../event-store.js';
import { firstFrom, lastRevision } from '../event-store.js';
import type { CollectionSpec, ReadStore } from '../read-store.js';
import { appendExactly } from './append-exactly.js';
import type { ArchiveItem } from './format.js';
import { readImportMarker, writeImportMarker } from './import-marker.js';
import { readArchive } from './read-archive.js';
import { tuning } from './tuning.js';

export interface ImportOptions {
  readonly path: string;
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  /** Streams of an installation: there must be none. */
  readonly prefix: string;
  /** Collections that an archive may carry. */
  readonly collections: readonly CollectionSpec[];
  /** Projections that must not have begun: their positions would be those of another log. */
  readonly projections: readonly { readonly name: string; readonly version: number }[];
  readonly signal: AbortSignal;
  /** Bytes of the archive handled, events written, events that an earlier run had written. */
  onProgress(bytes: number, events: number, skipped: number): void;
}

export interface ImportReport {
  readonly events: number;
  /** Of them, how many an earlier, interrupted run had written. */
  readonly skipped: number;
  readonly documents: number;
  /** Streams that count from 0 again, with the revision that their first event had. */
  readonly renumbered: readonly { readonly stream: string; readonly first: number }[];
  /** False when this archive had been imported completely before: nothing was done. */
  readonly written: boolean;
}

/** The target cannot take this archive; the message is one sentence for the person who asked for it. */
class ImportRefusedError extends Error {}

interface StreamState {
  /** Revision that the next event gets. */
  next: number;
  /** The last revision that stood when this run came to the stream, -1 for none. */
  readonly head: number;
  readonly first: number;
}

/**
 * Verify the archive first (`verifyArchive`): this trusts that it is whole.
 * @returns undefined when the signal ended it: run it again to go on
 * @throws ImportRefusedError, ArchiveDamagedError, ServiceError `unavailable`
 */
export async function importLog(options: ImportOptions): Promise<ImportReport | undefined> {
  const { path, eventStore, readStore, signal } = options;
  const streams = new Map<string, StreamState>();
  const retentions: Extract<ArchiveItem, { readonly kind: 'retention' }>[] = [];
  let [events, skipped, documents] = [0, 0, 0];
  let archiveId: string | undefined;

  async function stateOf(event: RecordedEvent): Promise<StreamState> {
    const known = streams.get(event.stream);
    if (known !== undefined) return known;
    const state = { next: 0, head: (await lastRevision(eventStore, event.stream)) ?? -1, first: event.revision };
    streams.set(event.stream, state);
    return state;
  }

  /** Appends what is not there yet; whole commands of one stream. */
  async function write(group: readonly RecordedEvent[]): Promise<void> {
    const [first] = group;
    if (first === undefined) return;
    const state = await stateOf(first);
    // What an earlier run wrote in one append may have been grouped otherwise; events end where an append ended.
    const there = Math.max(0, Math.min(group.length, state.head + 1 - state.next));
    const last = group[there - 1];
    if (last !== undefined && state.next + there - 1 === state.head) await assertSame(last, state.head);
    state.next += there;
    skipped += there;
    const missing = group.slice(there);
    if (missing.length > 0) {
      await appendExactly(eventStore, first.stream, state.next - 1, missing, signal);
      state.next += missing.length;
    }
    events += group.length;
  }

  async function assertSame(event: RecordedEvent, revision: number): Promise<void> {
    const stored = await firstFrom(eventStore, event.stream, revision);
    if (stored?.revision === revision && stored.id === event.id) return;
    throw new ImportRefusedError(
      `${event.stream} holds another event at revision ${revision} than the archive: something else wrote into this ` +
        'log since the import began; empty the stores and import again',
    );
  }

  for await (const part of readArchive(path)) {
    if (signal.aborted) return undefined;
    if (part.kind === 'end') break;
    for (const item of part.items) {
      if (item.kind === 'retention') retentions.push(item);
      if (item.kind !== 'header') continue;
      if (await alreadyDone(options, item.archive_id)) {
        return { events: 0, skipped: 0, documents: 0, renumbered: [], written: false };
      }
      archiveId = item.archive_id;
    }
    for (const group of groupsOf(part.items)) {
      await write(group);
      if (signal.aborted) return undefined;
    }
    documents += await writeDocuments(options, part.items);
    options.onProgress(part.bytes, events, skipped);
  }
  for (const [stream, { next }] of streams) {
    const head = (await lastRevision(eventStore, stream)) ?? -1;
    if (head !== next - 1) {
      throw new ImportRefusedError(
        `${stream} ends at revision ${head}, the archive at ${next - 1}: something else wrote into this log since the ` +
          'import began; empty the stores and import again',
      );
    }
  }
  for (const { stream, retention } of retentions) await eventStore.setRetention(stream, retention);
  if (archiveId !== undefined) await writeImportMarker(readStore, { archiveId, state: 'done' });
  const renumbered = [...streams]
    .filter(([, { first }]) => first > 0)
    .map(([stream, { first }]) => ({ stream, first }));
  return { events, skipped, documents, renumbered, written: true };
}

/** Leaves the marker in an empty target. @returns true when it holds this archive already @throws ImportRefusedError */
async function alreadyDone(options: ImportOptions, archiveId: string): Promise<boolean> {
  const { readStore } = options;
  const marker = await readImportMarker(readStore);
  if (marker?.archiveId === archiveId) return marker.state === 'done';
  if (marker?.state === 'running') {
    throw new ImportRefusedError(
      'the target holds an unfinished import of another archive: finish that one or empty it',
    );
  }
  const found = await whatIsThere(options);
  if (found !== undefined) throw new ImportRefusedError(`the target is not empty: ${found}`);
  await writeImportMarker(readStore, { archiveId, state: 'running' });
  return false;
}

/**
 * Something that an empty installation does not have, as the end of a sentence; undefined when it is empty.
 * @throws ServiceError `unavailable`
 */
export async function whatIsThere(
  options: Pick<ImportOptions, 'eventStore' | 'readStore' | 'prefix' | 'collections' | 'projections' | 'signal'>,
): Promise<string | undefined> {
  const { eventStore, readStore, prefix, collections, projections, signal } = options;
  const enough = new AbortController();
  const deadline = AbortSignal.timeout(tuning.giveUpMs);
  const subscription = { prefix, after: 'start', signal: AbortSignal.any([signal, enough.signal, deadline]) } as const;
  let looked = false;
  try {
    for await (const item of eventStore.subscribe(subscription)) {
      const stream = item.kind === 'events' ? item.events[0]?.stream : undefined;
      if (stream !== undefined) return `its log has events in ${stream}`;
      if (item.kind !== 'caught_up') continue;
      looked = true;
      break;
    }
  } finally {
    enough.abort();
  }
  if (!looked) return `whether its log is empty could not be found out within ${tuning.giveUpMs / 1000} s`;
  for (const spec of collections) {
    if ((await (await readStore.collection(spec)).find({ limit: 1 })).items.length > 0) {
      return `its read store has documents in ${spec.name}`;
    }
  }
  for (const { name, version } of projections) {
    const began = await readStore.loadCheckpoint(name, version);
    if (began !== undefined || (await readStore.activeVersion(name)) !== undefined) {
      return `its read store has the ${name} of another log`;
    }
  }
  return undefined;
}

/** Neighbouring commands of one stream, together as large as an append of the service; a larger command alone. */
function* groupsOf(items: readonly ArchiveItem[]): Generator<readonly RecordedEvent[], void, void> {
  let group: RecordedEvent[] = [];
  let command: RecordedEvent[] = [];
  let [groupBytes, commandBytes] = [0, 0];
  for (const item of items) {
    if (item.kind !== 'event') continue;
    const { event } = item;
    command.push(event);
    commandBytes += eventBytes(event);
    if (event.metadata.command.index + 1 < event.metadata.command.count) continue;
    const fits =
      group[0]?.stream === event.stream &&
      group.length + command.length <= limits.events.appendEvents &&
      groupBytes + commandBytes <= limits.events.appendBytes;
    if (!fits) {
      if (group.length > 0) yield group;
      [group, groupBytes] = [[], 0];
    }
    group.push(...command);
    groupBytes += commandBytes;
    [command, commandBytes] = [[], 0];
  }
  if (group.length > 0) yield group;
}

async function writeDocuments(
  { readStore, collections }: ImportOptions,
  items: readonly ArchiveItem[],
): Promise<number> {
  const documents = items.filter((item) => item.kind === 'document');
  for (const name of new Set(documents.map(({ collection }) => collection))) {
    const own = documents.filter(({ collection }) => collection === name);
    const spec = collections.find((known) => known.name === name && known.version === own[0]?.version);
    if (spec === undefined) {
      throw new ImportRefusedError(`the archive carries the collection ${name}, which this release does not know`);
    }
    const collection = await readStore.collection(spec);
    for (let from = 0; from < own.length; from += tuning.documentsAtOnce) {
      await collection.set(own.slice(from, from + tuning.documentsAtOnce));
    }
  }
  return documents.length;
}

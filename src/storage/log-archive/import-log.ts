/**
 * Writes an archive into an empty installation: in log order, with the same ids and revisions, each whole command in one
 * append. An interrupted import continues where it stopped. Runs no domain logic and opens no secrets.
 *
 * When old events of a stream have expired, its revisions start at 0 again, because no store can start a stream at a
 * later one. Such streams hold facts, and nothing refers to their revisions.
 */
import { sleep } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import type { ProposedEvent, RecordedEvent } from '../../kernel/event.js';
import { limits } from '../../kernel/limits.js';
import { backoff, storeRetry } from '../../kernel/retry.js';
import { eventBytes } from '../event-json.js';
import { firstFrom, lastRevision, type EventStore } from '../event-store.js';
import { giveUpMs } from '../follow.js';
import type { ReadStore } from '../read-store.js';
import type { ArchiveItem } from './format.js';
import { readArchive } from './read-archive.js';

export interface ImportOptions {
  readonly path: string;
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  /** The streams of an installation; the target must have none. */
  readonly streams: readonly string[];
  /** Projections that must not have started: their positions would belong to another log. */
  readonly projections: readonly { readonly name: string; readonly version: number }[];
  readonly signal: AbortSignal;
  /** @param skipped events that an earlier run had written */
  onProgress(bytes: number, events: number, skipped: number): void;
}

export interface ImportReport {
  readonly events: number;
  /** How many of them an earlier, interrupted run had written. */
  readonly skipped: number;
  /** Streams whose revisions start at 0 again, with the original revision of their first event. */
  readonly renumbered: readonly { readonly stream: string; readonly first: number }[];
  /** False when this archive was already imported completely and nothing was done. */
  readonly written: boolean;
}

/** The target cannot take this archive; the message is one sentence for the operator. */
class ImportRefusedError extends Error {}

interface StreamState {
  /** The revision of the next event. */
  next: number;
  /** The last revision when this run reached the stream; -1 for a new stream. */
  readonly head: number;
  readonly first: number;
}

/**
 * Relies on an archive that `verifyArchive` has verified.
 * @returns undefined when the signal ended it; running it again continues
 * @throws ImportRefusedError, ArchiveDamagedError, ServiceError `unavailable`
 */
export async function importLog(options: ImportOptions): Promise<ImportReport | undefined> {
  const { path, eventStore, readStore, signal } = options;
  const streams = new Map<string, StreamState>();
  const retentions: Extract<ArchiveItem, { readonly kind: 'retention' }>[] = [];
  let [events, skipped] = [0, 0];
  let archiveId: string | undefined;

  async function stateOf(event: RecordedEvent): Promise<StreamState> {
    const existing = streams.get(event.stream);
    if (existing !== undefined) return existing;
    const state = { next: 0, head: (await lastRevision(eventStore, event.stream)) ?? -1, first: event.revision };
    streams.set(event.stream, state);
    return state;
  }

  /** Appends the missing events of whole commands, all of one stream. */
  async function write(group: readonly RecordedEvent[]): Promise<void> {
    const [first] = group;
    if (first === undefined) return;
    const state = await stateOf(first);
    // An earlier run may have grouped its appends differently, so part of this group may exist already.
    const existing = Math.max(0, Math.min(group.length, state.head + 1 - state.next));
    const last = group[existing - 1];
    if (last !== undefined && state.next + existing - 1 === state.head) await assertSame(last, state.head);
    state.next += existing;
    skipped += existing;
    const missing = group.slice(existing);
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
      `${event.stream} has another event at revision ${revision} than the archive: something else has written to this ` +
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
        return { events: 0, skipped: 0, renumbered: [], written: false };
      }
      archiveId = item.archive_id;
    }
    for (const group of groupsOf(part.items)) {
      if (signal.aborted) return undefined;
      await write(group);
    }
    options.onProgress(part.bytes, events, skipped);
  }
  for (const [stream, { next }] of streams) {
    const head = (await lastRevision(eventStore, stream)) ?? -1;
    if (head !== next - 1) {
      throw new ImportRefusedError(
        `${stream} ends at revision ${head}, the archive at ${next - 1}: something else has written to this log since ` +
          'the import began; empty the stores and import again',
      );
    }
  }
  for (const { stream, retention } of retentions) await eventStore.setRetention(stream, retention);
  if (archiveId !== undefined) await writeImportMarker(readStore, { archive_id: archiveId, state: 'done' });
  const renumbered = [...streams]
    .filter(([, { first }]) => first > 0)
    .map(([stream, { first }]) => ({ stream, first }));
  return { events, skipped, renumbered, written: true };
}

/** Marks an empty target. @returns true when it already contains this archive @throws ImportRefusedError */
async function alreadyDone(options: ImportOptions, archiveId: string): Promise<boolean> {
  const { eventStore, readStore, streams } = options;
  const marker = await readImportMarker(readStore);
  if (marker?.archive_id === archiveId) {
    if (marker.state === 'running') return false;
    // The log may have been emptied since, and the read store not.
    for (const stream of streams) if ((await lastRevision(eventStore, stream)) !== undefined) return true;
  } else if (marker?.state === 'running') {
    throw new ImportRefusedError(
      'the target holds an unfinished import of another archive: finish that import or empty the target',
    );
  }
  const content = await whatIsThere(options);
  if (options.signal.aborted) return false;
  if (content !== undefined) throw new ImportRefusedError(`the target is not empty: ${content}`);
  await writeImportMarker(readStore, { archive_id: archiveId, state: 'running' });
  return false;
}

/**
 * Why an installation is not empty, as the end of a sentence; undefined when it is empty.
 * @throws ServiceError `unavailable`
 */
export async function whatIsThere(
  options: Pick<ImportOptions, 'eventStore' | 'readStore' | 'streams' | 'projections' | 'signal'>,
): Promise<string | undefined> {
  const { eventStore, readStore, streams, projections, signal } = options;
  const enough = new AbortController();
  const deadline = AbortSignal.timeout(giveUpMs);
  const ends = AbortSignal.any([signal, enough.signal, deadline]);
  const subscription = { streams, after: 'start', signal: ends } as const;
  let caughtUp = false;
  try {
    for await (const item of eventStore.subscribe(subscription)) {
      const stream = item.kind === 'events' ? item.events[0]?.stream : undefined;
      if (stream !== undefined) return `its log has events in ${stream}`;
      if (item.kind !== 'caught_up') continue;
      caughtUp = true;
      break;
    }
  } finally {
    enough.abort();
  }
  if (!caughtUp) return `its log could not be checked within ${giveUpMs / 1000} s`;
  for (const { name, version } of projections) {
    const began = await readStore.loadCheckpoint(name, version);
    if (began !== undefined || (await readStore.activeVersion(name)) !== undefined) {
      return `its read store has the ${name} of another log`;
    }
  }
  return undefined;
}

/** Groups adjacent commands of one stream, up to the size of one append; a larger command is a group of its own. */
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

/**
 * Appends events directly after a revision and retries until they are known to be there. Every attempt has the same ids
 * and expected revision, so a store answers a repeat like the first attempt.
 * @param after the revision that they follow; -1 for a stream that does not exist
 * @throws ServiceError `conflict` when other events are there; `unavailable` when the store stays away for `giveUpMs`
 *   or the signal aborts first
 */
async function appendExactly(
  eventStore: EventStore,
  stream: string,
  after: number,
  events: readonly ProposedEvent[],
  signal: AbortSignal,
): Promise<void> {
  const began = performance.now();
  const proposed = events.map(({ id, type, data, metadata }) => ({ id, type, data, metadata }));
  for (let tries = 0; ; tries += 1) {
    const outcome = await eventStore.append(stream, after < 0 ? 'no_stream' : after, proposed);
    if (outcome.kind === 'appended') return;
    if (outcome.kind === 'conflict') {
      throw new ServiceError(
        'conflict',
        `${stream} ends at ${outcome.actual === 'no_stream' ? 'no event' : `revision ${outcome.actual}`} where the ` +
          `archive continues after revision ${after}: something else is writing to this log`,
      );
    }
    if (signal.aborted || performance.now() - began > giveUpMs) {
      throw new ServiceError('unavailable', `the event store does not accept events: ${outcome.cause}`);
    }
    await sleep(backoff(storeRetry, tries), signal);
  }
}

/**
 * The marker that an import leaves in the read store before it writes anything: its archive, and whether it is
 * complete. A service must not start on half a log, because it would write to it.
 */
type ImportMarker = { readonly archive_id: string; readonly state: 'running' | 'done' };

const markers = { name: 'log_imports', version: 1 } as const;
const markerId = 'import';

/** The marker of the last import, undefined if there was none. @throws ServiceError `unavailable` */
export async function readImportMarker(readStore: ReadStore): Promise<ImportMarker | undefined> {
  const collection = await readStore.collection<ImportMarker>(markers);
  return (await collection.get(markerId))?.fields;
}

async function writeImportMarker(readStore: ReadStore, fields: ImportMarker): Promise<void> {
  const collection = await readStore.collection<ImportMarker>(markers);
  await collection.set([{ id: markerId, fields }]);
}

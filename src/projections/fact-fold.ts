/**
 * An in-memory fold of streams of facts, and of the fleet beside them, at the end of the log, with a checkpoint of JSON
 * lines. The caller knows what the events mean. `log-follower.ts` feeds it. Implements
 * `docs/contract/domain.md#commands-and-events`.
 */
import { readCommand } from '../domain/log/upcast.js';
import { errorText } from '../kernel/errors.js';
import { lastEvent, streams, type RecordedCommand, type RecordedEvent } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import { createWaiters } from '../kernel/waiters.js';
import { levelOf } from '../storage/broken-log.js';
import type { EventStore } from '../storage/event-store.js';
import { openCheckpoint, storeCheckpoint, type CheckpointKind, type Sealing } from '../storage/sealed-checkpoint.js';

export interface FactFoldDeps {
  readonly eventStore: Pick<EventStore, 'loadFoldCheckpoint' | 'saveFoldCheckpoint'>;
  readonly sealing: Sealing;
  readonly logger: Logger;
}

/** The state of a fold, and how an event changes it. */
export interface FoldedFacts<Line> {
  readonly kind: CheckpointKind;
  readonly streams: readonly string[];
  /** For the log. */
  readonly name: string;
  restore(line: Line): void;
  lines(): readonly Line[];
  take(event: RecordedEvent): void;
}

export interface FactFold {
  readonly streams: readonly string[];
  /** Revision of the newest folded event of a stream; -1 before any. */
  revision(stream: string): number;
  /** True once an event of a stream is folded, false after `timeoutMs`. */
  holds(stream: string, revision: number, timeoutMs: number): Promise<boolean>;
  /** Why it no longer follows the log; undefined while it does. */
  failure(): string | undefined;
  position(): number;
  save(signal: AbortSignal): Promise<void>;
  apply(commands: readonly RecordedCommand[]): void;
  stopped(error: unknown): void;
  /** Ends every wait. */
  close(): void;
}

const linesPerSlice = 500;

/** The first line of a checkpoint. */
interface Head {
  readonly position: number;
  readonly revisions: readonly (readonly [stream: string, revision: number])[];
}

function* slicesOf(head: Head, lines: readonly unknown[]): Generator<Uint8Array> {
  yield Buffer.from(`${JSON.stringify(head)}\n`);
  for (let from = 0; from < lines.length; from += linesPerSlice) {
    const slice = lines.slice(from, from + linesPerSlice);
    yield Buffer.from(slice.map((line) => `${JSON.stringify(line)}\n`).join(''));
  }
}

/** Loads the checkpoint. @throws ServiceError `unavailable` */
export async function openFactFold<Line>(
  { eventStore, sealing, logger }: FactFoldDeps,
  { kind, name, restore, lines, take, ...facts }: FoldedFacts<Line>,
): Promise<FactFold> {
  let revisions = new Map<string, number>();
  let position = 0;
  let failure: string | undefined;
  const waiters = createWaiters();
  const revision = (stream: string): number => revisions.get(stream) ?? -1;

  const stored = await eventStore.loadFoldCheckpoint(kind.name);
  const opened = stored && openCheckpoint(kind, stored, sealing);
  if (opened?.ok === true) {
    const [head = '', ...rest] = Buffer.from(opened.value).toString('utf8').trimEnd().split('\n');
    const at = JSON.parse(head) as Head;
    position = at.position;
    revisions = new Map(at.revisions);
    for (const line of rest) restore(JSON.parse(line) as Line);
  } else if (opened !== undefined) {
    logger.warn({ fold: name, reason: opened.error }, 'the checkpoint of a fold is not used; the log is read instead');
  }

  return {
    streams: facts.streams,
    revision,
    holds: (stream, wanted, timeoutMs) => waiters.until(() => revision(stream) >= wanted, timeoutMs),
    failure: () => failure,
    position: () => position,
    save(signal) {
      const slices = slicesOf({ position, revisions: [...revisions] }, lines());
      const captured = { revision: revision(streams.fleet), position, slices };
      return storeCheckpoint(eventStore, kind, captured, sealing, signal);
    },
    apply(commands) {
      for (const command of commands) {
        const last = lastEvent(command);
        if (last.position <= position) continue;
        for (const event of readCommand(command).events) take(event);
        position = last.position;
        revisions.set(command.stream, last.revision);
      }
      waiters.look();
    },
    stopped(error) {
      failure = errorText(error);
      logger[levelOf(error)]({ fold: name, error: failure }, 'a fold of facts no longer follows the log');
    },
    close: () => waiters.close(),
  };
}

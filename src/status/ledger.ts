/**
 * What was told last of each resource, in memory: follows `svc-status` and the fleet from a checkpoint on, and knows which
 * incidents are open. `src/domain/status/ledger.ts` is the pure fold. Implements
 * `docs/contract/notices.md#status-changes-are-facts`.
 */
import { fleetEvent } from '../domain/fleet/resources.js';
import { readCommand } from '../domain/log/upcast.js';
import { statusChanged } from '../domain/status/facts.js';
import { afterCommand, afterFact, wellBy, type LastFact } from '../domain/status/ledger.js';
import { keyText, type StatusKey } from '../domain/status/status.js';
import { errorText } from '../kernel/errors.js';
import { lastEvent, streams, type RecordedCommand, type RecordedEvent } from '../kernel/event.js';
import { createListeners } from '../kernel/listeners.js';
import type { Logger } from '../kernel/logger.js';
import { createWaiters } from '../kernel/waiters.js';
import { levelOf } from '../storage/broken-log.js';
import type { EventStore } from '../storage/event-store.js';
import { openCheckpoint, storeCheckpoint, type Sealing } from '../storage/sealed-checkpoint.js';

export interface StatusLedger {
  /** Undefined when nothing was told, or a command has made the resource count as well since. */
  last(key: StatusKey): LastFact | undefined;
  all(): IterableIterator<LastFact>;
  /** Whether the log has told of any status. */
  isEmpty(): boolean;
  /** Revision of the newest event of `svc-status` that is folded; -1 before any. */
  revision(stream: string): number;
  /** True once an event of `svc-status` is folded, false after `timeoutMs`. */
  holds(revision: number, timeoutMs: number): Promise<boolean>;
  /** Calls back with each resource of which a fact tells, also another instance's, or which counts as well by a command. @returns how to stop */
  onChange(listener: (key: StatusKey) => void): () => void;
  /** Why it no longer follows the log; undefined while it does. */
  failure(): string | undefined;
}

/** The same as a fold that `followInMemory` keeps at the end of the log. */
export interface StatusLedgerFold extends StatusLedger {
  readonly streams: readonly string[];
  position(): number;
  save(signal: AbortSignal): Promise<void>;
  apply(commands: readonly RecordedCommand[]): void;
  moved(): void;
  stopped(error: unknown): void;
  /** Ends every wait. */
  close(): void;
}

export interface StatusLedgerDeps {
  readonly eventStore: Pick<EventStore, 'loadFoldCheckpoint' | 'saveFoldCheckpoint'>;
  readonly sealing: Sealing;
  readonly logger: Logger;
}

/** Raise the version when the fold's state or meaning changes: older checkpoints are then ignored. */
const kind = { name: 'svc-status', foldVersion: 1 } as const;
const linesPerSlice = 500;
/** The first line of a checkpoint. Every other one is a `LastFact`. */
interface Head {
  readonly position: number;
  readonly revisions: readonly (readonly [stream: string, revision: number])[];
}

/** Loads the checkpoint. @throws ServiceError `unavailable` */
export async function openStatusLedger({ eventStore, sealing, logger }: StatusLedgerDeps): Promise<StatusLedgerFold> {
  const facts = new Map<string, LastFact>();
  const revisions = new Map<string, number>();
  let position = 0;
  let failure: string | undefined;
  const waiters = createWaiters();
  const listeners = createListeners<StatusKey>((error) =>
    logger.error({ error: errorText(error) }, 'a listener for changes of the ledger failed'),
  );

  function restore(lines: Uint8Array): void {
    const [head, ...rest] = Buffer.from(lines).toString('utf8').trimEnd().split('\n');
    const at = JSON.parse(head ?? '') as Head;
    position = at.position;
    for (const [stream, revision] of at.revisions) revisions.set(stream, revision);
    for (const text of rest) {
      const last = JSON.parse(text) as LastFact;
      facts.set(keyText(last.resource), last);
    }
  }

  function* slicesOf(head: Head, lines: readonly LastFact[]): Generator<Uint8Array> {
    yield Buffer.from(`${JSON.stringify(head)}\n`);
    for (let from = 0; from < lines.length; from += linesPerSlice) {
      const slice = lines.slice(from, from + linesPerSlice);
      yield Buffer.from(slice.map((line) => `${JSON.stringify(line)}\n`).join(''));
    }
  }

  function takeFact(event: RecordedEvent): void {
    const { data } = statusChanged(event);
    const key = keyText(data.resource);
    facts.set(key, afterFact(facts.get(key), data, event.metadata.occurred_at));
    listeners.tell(data.resource);
  }

  function takeCommand(event: RecordedEvent): void {
    const key = wellBy(fleetEvent(event));
    if (key === undefined) return;
    const last = facts.get(keyText(key));
    if (last === undefined) return;
    const next = afterCommand(last, event.metadata.occurred_at);
    if (next === undefined) facts.delete(keyText(key));
    else facts.set(keyText(key), next);
    listeners.tell(key);
  }

  const stored = await eventStore.loadFoldCheckpoint(kind.name);
  const lines = stored && openCheckpoint(kind, stored, sealing);
  if (lines?.ok === true) restore(lines.value);
  else if (lines !== undefined) {
    logger.warn({ reason: lines.error }, 'the checkpoint of statuses is not used; the log is read instead');
  }

  return {
    last: (key) => facts.get(keyText(key)),
    all: () => facts.values(),
    isEmpty: () => !revisions.has(streams.status),
    revision: (stream) => revisions.get(stream) ?? -1,
    holds: (revision, timeoutMs) => waiters.until(() => (revisions.get(streams.status) ?? -1) >= revision, timeoutMs),
    onChange: listeners.add,
    failure: () => failure,
    streams: [streams.fleet, streams.status],
    position: () => position,
    save(signal) {
      const head: Head = { position, revisions: [...revisions] };
      const slices = slicesOf(head, [...facts.values()]);
      const captured = { revision: revisions.get(streams.fleet) ?? -1, position, slices };
      return storeCheckpoint(eventStore, kind, captured, sealing, signal);
    },
    apply(commands) {
      for (const command of commands) {
        const last = lastEvent(command);
        if (last.position <= position) continue;
        for (const event of readCommand(command).events) {
          if (event.stream === streams.status) takeFact(event);
          else takeCommand(event);
        }
        position = last.position;
        revisions.set(command.stream, last.revision);
      }
      waiters.look();
    },
    moved: () => undefined,
    stopped(error) {
      failure = errorText(error);
      logger[levelOf(error)]({ error: failure }, 'the ledger of statuses no longer follows the log');
    },
    close: () => waiters.close(),
  };
}

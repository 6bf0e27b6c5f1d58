/**
 * What was told last of each resource, in memory: follows `svc-status` and the fleet from a checkpoint on, and knows which
 * incidents are open. `src/domain/status/ledger.ts` is the pure fold. Implements
 * `docs/contract/notices.md#status-changes-are-facts`.
 */
import { logsError } from '../kernel/logger.js';
import { fleetEvent } from '../domain/fleet/resources.js';
import { statusChanged } from '../domain/status/facts.js';
import { afterCommand, afterFact, wellBy, type LastFact } from '../domain/status/ledger.js';
import { keyText, type StatusKey } from '../domain/status/status.js';
import { streams, type RecordedEvent } from '../kernel/event.js';
import { createListeners } from '../kernel/listeners.js';
import { openFactFold, type FactFold, type FactFoldDeps } from '../projections/fact-fold.js';

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
export interface StatusLedgerFold extends StatusLedger, Omit<FactFold, keyof StatusLedger> {
  moved(): void;
}

/** Raise the version when the fold's state or meaning changes: older checkpoints are then ignored. */
const kind = { name: 'svc-status', foldVersion: 2 } as const;

/** Loads the checkpoint. @throws ServiceError `unavailable` */
export async function openStatusLedger(deps: FactFoldDeps): Promise<StatusLedgerFold> {
  const facts = new Map<string, LastFact>();
  const listeners = createListeners<StatusKey>(logsError(deps.logger, 'a listener for changes of the ledger failed'));

  /** Keeps what counts now, nothing where nothing is left to say, and tells listeners. */
  function keep(resource: StatusKey, next: LastFact | undefined): void {
    if (next === undefined) facts.delete(keyText(resource));
    else facts.set(keyText(resource), next);
    listeners.tell(resource);
  }

  function takeFact(event: RecordedEvent): void {
    const { data } = statusChanged(event);
    keep(data.resource, afterFact(facts.get(keyText(data.resource)), data, event.metadata.occurred_at));
  }

  function takeCommand(event: RecordedEvent): void {
    const well = wellBy(fleetEvent(event));
    if (well === undefined) return;
    const last = facts.get(keyText(well.key));
    keep(well.key, last && afterCommand(last, well, event.metadata.occurred_at));
  }

  const fold = await openFactFold<LastFact>(deps, {
    kind,
    streams: [streams.fleet, streams.status],
    name: 'statuses',
    restore: (last) => void facts.set(keyText(last.resource), last),
    lines: () => [...facts.values()],
    take: (event) => (event.stream === streams.status ? takeFact(event) : takeCommand(event)),
  });
  return {
    ...fold,
    last: (key) => facts.get(keyText(key)),
    all: () => facts.values(),
    isEmpty: () => fold.revision(streams.status) < 0,
    holds: (revision, timeoutMs) => fold.holds(streams.status, revision, timeoutMs),
    onChange: listeners.add,
    moved: () => undefined,
  };
}

/**
 * What was last told about each resource, in memory: follows `svc-status` and the fleet from a checkpoint on, and knows
 * which incidents are open. `src/domain/status/ledger.ts` is the pure fold. Implements
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
import { tuning } from './tuning.js';

export interface StatusLedger {
  /** Undefined if nothing was told, or if a command has since made the resource count as healthy. */
  last(key: StatusKey): LastFact | undefined;
  all(): IterableIterator<LastFact>;
  /** Whether the log has told of any status. */
  isEmpty(): boolean;
  /** Revision of the newest event of `svc-status` that is folded; -1 before any. */
  revision(stream: string): number;
  /** True once an event of `svc-status` is folded, false after `timeoutMs`. */
  holds(revision: number, timeoutMs: number): Promise<boolean>;
  /**
   * Calls back with each resource that a fact of any instance is about, or that a command makes count as healthy.
   * @returns how to stop
   */
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

  /** Keys of deleted resources whose incidents are over, in the order of their last facts. */
  const gone = new Set<string>();

  function enter(next: LastFact): void {
    const key = keyText(next.resource);
    facts.set(key, next);
    gone.delete(key);
    if (next.isGone === true && next.isUnwritten !== true) gone.add(key);
  }

  /**
   * Forgets those about which nothing is left to say; the read model of incidents has long followed.
   * @param at of an event, RFC 3339
   */
  function forgetGone(at: string): void {
    for (const key of gone) {
      if (Date.parse(facts.get(key)?.at ?? '') > Date.parse(at) - tuning.goneKeptMs) return;
      gone.delete(key);
      facts.delete(key);
    }
  }

  function takeFact(event: RecordedEvent): void {
    const { data } = statusChanged(event);
    const at = event.metadata.occurred_at;
    enter(afterFact(facts.get(keyText(data.resource)), data, at));
    forgetGone(at);
    listeners.tell(data.resource);
  }

  function takeCommand(event: RecordedEvent): void {
    const well = wellBy(fleetEvent(event));
    if (well === undefined) return;
    const [last, at] = [facts.get(keyText(well.key)), event.metadata.occurred_at];
    const next = last && afterCommand(last, well, at);
    if (next !== undefined) enter(next);
    else facts.delete(keyText(well.key));
    forgetGone(at);
    listeners.tell(well.key);
  }

  const fold = await openFactFold<LastFact>(deps, {
    kind,
    streams: [streams.fleet, streams.status],
    name: 'statuses',
    restore: enter,
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

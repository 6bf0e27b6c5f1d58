/**
 * Writes the facts of `svc-status`: one instance at a time, by a lease, each change once. An append expects the
 * revision up to which the ledger has read; after anything but success, the ledger reads on and everything is decided
 * again. `src/domain/status/decide.ts` says when a fact is due. Implements
 * `docs/contract/notices.md#status-changes-are-facts`.
 */
import { proposedFact, serviceActor } from '../domain/log/fact.js';
import { dueFact, untoldFact, type Due } from '../domain/status/decide.js';
import type { StatusFact } from '../domain/status/facts.js';
import { keyText, statusTypes, type StatusKey } from '../domain/status/status.js';
import { createTurns, startLoop } from '../kernel/background.js';
import { isOfFuture, timestamp, type Clock } from '../kernel/clock.js';
import { ServiceError, unreachable } from '../kernel/errors.js';
import { isForeign, streams, type ProposedEvent } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import { createTokenBucket } from '../kernel/token-bucket.js';
import type { EventStore } from '../storage/event-store.js';
import { createHeldLease } from '../storage/held-lease.js';
import type { Leases } from '../storage/read-store.js';
import type { StatusLedger } from './ledger.js';
import type { StatusSource } from './observer.js';
import { tuning } from './tuning.js';

export interface StatusWriterDeps {
  readonly eventStore: Pick<EventStore, 'append' | 'read'>;
  readonly leases: Pick<Leases, 'acquire' | 'release'>;
  readonly ledger: StatusLedger;
  readonly source: StatusSource;
  readonly instanceId: string;
  readonly ids: Ids;
  /** `now` is the same on every instance. */
  readonly clock: Clock;
  /** How long agents have to come back after a take-over, in milliseconds. */
  graceMs(): number;
  /** Why nothing may be written now; undefined if writing is allowed. */
  readOnly(): string | undefined;
  readonly logger: Logger;
}

/** Appends facts where the ledger ends. @param written called with how many were appended */
function createAppend({ eventStore, ledger }: StatusWriterDeps, written: (facts: number) => void) {
  /** Revision of `svc-status` up to which the ledger lacks only foreign and expired events. */
  let passed = -1;

  /** @returns whether the facts are in the log and the ledger holds them @throws ServiceError `unavailable` */
  async function append(events: readonly ProposedEvent[]): Promise<boolean> {
    const known = Math.max(passed, ledger.revision(streams.status));
    const outcome = await eventStore.append(streams.status, known < 0 ? 'no_stream' : known, events);
    if (outcome.kind === 'appended') {
      written(events.length);
      return ledger.holds(outcome.revision, tuning.foldWaitMs);
    }
    if (outcome.kind === 'refused' || outcome.kind === 'unavailable')
      throw new ServiceError('unavailable', `${streams.status} takes no facts: ${outcome.cause}`);
    await readOn();
    return false;
  }

  /** Waits until the ledger holds the newest fact of the log. @throws ServiceError `unavailable` */
  async function readOn(): Promise<void> {
    let head = -1;
    const back = { direction: 'backward', from: 'end', maxCount: limits.events.appendEvents } as const;
    for await (const event of eventStore.read(streams.status, back)) {
      head = Math.max(head, event.revision);
      if (isForeign(event)) continue;
      if (await ledger.holds(event.revision, tuning.foldWaitMs)) passed = head;
      return;
    }
    // Whatever was there has expired.
    passed = head;
  }

  return append;
}

/** Which resources wait for a decision, and which facts about them are due. */
function createDecisions({ ledger, source, clock, ids, ...deps }: StatusWriterDeps) {
  const { perMinute, leaseMs } = limits.status;
  /** By key: when to decide again, milliseconds since the epoch. */
  const waiting = new Map<string, { readonly key: StatusKey; readonly at: number }>();
  // Half at once and half over a minute: never more than all of it in any minute.
  const budget = createTokenBucket(perMinute / 2 / 60, perMinute / 2, clock.monotonic());
  /** When this instance became the writer, or woke up, milliseconds since the epoch. */
  let since = 0;
  let repeatAt = 0;
  /** The time of the last look. */
  let newest = 0;
  /** A state older than `svc-status` itself, as after an upgrade, gets its first fact, but nobody is told about it. */
  let older: ReadonlySet<string> = new Set(
    ledger.isEmpty() ? [...source.keys()].filter(source.isOlder).map(keyText) : [],
  );

  const look = (key: StatusKey): void => void waiting.set(keyText(key), { key, at: 0 });

  function takeOver(): void {
    since = clock.now();
    newest = since;
    repeatAt = 0;
    for (const key of source.keys()) look(key);
    if (!ledger.isEmpty()) older = new Set();
  }

  /** What is due now, as many facts as one append may hold; everything else waits. */
  async function due(): Promise<readonly ProposedEvent[]> {
    const now = clock.now();
    // The clock was ahead and is right now: everything that waits for a time waits for a wrong one. Or the machine slept, and
    // heard no agent meanwhile.
    if (isOfFuture(newest, now) || now > newest + leaseMs) takeOver();
    newest = now;
    const events: ProposedEvent[] = [];
    if (budget.wait(clock.monotonic(), limits.events.appendEvents) > 0) return events;
    if (now >= since + deps.graceMs()) older = new Set();
    if (now >= repeatAt) {
      repeatAt = now + tuning.repeatEveryMs;
      for (const last of ledger.all()) if (untoldFact(last, now) !== undefined) look(last.resource);
    }
    const pause = createTurns(tuning.sliceMs);
    const ready = [...waiting].filter(([, { at }]) => at <= now);
    for (const type of statusTypes) {
      for (const [text, { key }] of ready) {
        if (key.type !== type) continue;
        if (events.length >= limits.events.appendEvents) return events;
        await pause();
        const event = decide(text, key, now);
        if (event !== undefined) events.push(event);
      }
    }
    return events;
  }

  function decide(text: string, key: StatusKey, now: number): ProposedEvent | undefined {
    const [last, observed, id] = [ledger.last(key), source.observe(key, since), ids.next()];
    const proposed = (data: StatusFact): ProposedEvent =>
      proposedFact({ type: 'StatusChanged', data }, ids, {
        id,
        actor: serviceActor,
        requestId: 'status',
        at: timestamp(now),
      });
    const untold = last && untoldFact(last, now);
    if (untold !== undefined) return proposed(untold);
    const found: Due = observed === undefined ? { kind: 'nothing' } : dueFact(last, observed, now, id);
    switch (found.kind) {
      case 'later':
        waiting.set(text, { key, at: found.at });
        return undefined;
      case 'now':
        return proposed(older.has(text) ? { ...found.fact, again: true } : found.fact);
      case 'nothing':
        waiting.delete(text);
        return undefined;
      default:
        return unreachable(found);
    }
  }

  return { look, takeOver, due, written: (facts: number): void => budget.take(clock.monotonic(), facts) };
}

/** The caller takes its turns. @internal exported for tests */
export function createStatusWriter(deps: StatusWriterDeps) {
  const { ledger, source } = deps;
  const { takeOver, due, ...decisions } = createDecisions(deps);
  const append = createAppend(deps, decisions.written);
  const lease = createHeldLease({
    leases: deps.leases,
    kind: 'status',
    name: 'writer',
    holder: deps.instanceId,
    ttlMs: limits.status.leaseMs,
    everyMs: tuning.leaseEveryMs,
    clock: deps.clock,
    onGiven: (isTaken) => (isTaken ? takeOver() : undefined),
  });
  const look = (key: StatusKey): void => {
    // Whoever takes over looks at everything.
    if (lease.isHeld()) decisions.look(key);
  };
  // A writer that was frozen may have told something after this one took over and found nothing to tell.
  const stops = [source.onChange(look), ledger.onChange(look)];

  return {
    /** Decides and writes what is due. `startStatusWriter` calls it repeatedly; tests call it themselves. */
    async turn(): Promise<void> {
      if (deps.readOnly() !== undefined || ledger.failure() !== undefined) return;
      while (await lease.hold()) {
        const events = await due();
        // The lease may have ended while this process slept.
        if (events.length === 0 || !lease.isHeld() || !(await append(events))) return;
      }
    },
    /** Gives up the lease. */
    async close(): Promise<void> {
      for (const stop of stops) stop();
      await lease.release();
    },
  };
}

/** Writes repeatedly until closed. */
export function startStatusWriter(deps: StatusWriterDeps): { close(): Promise<void> } {
  const writer = createStatusWriter(deps);
  const loop = startLoop(tuning.turnMs, writer.turn, logsWarning(deps.logger, 'changes of status cannot be told yet'));
  return {
    async close() {
      await loop.close();
      await writer.close().catch(logsWarning(deps.logger, 'the lease of the status writer ends by itself'));
    },
  };
}

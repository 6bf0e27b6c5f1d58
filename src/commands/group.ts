/**
 * Decides a group of waiting commands in order, on a draft over the committed state, and appends it. The draft ends with
 * the decision; events are folded once the log holds them.
 *
 * If the store does not report the outcome, the log is searched for the group's event ids, and then the same append is
 * repeated: the first try to arrive is written, and the store answers the others alike. Implements
 * `docs/contract/domain.md#commands-and-events`.
 */
import { acceptedKey } from '../domain/aggregate/idempotency.js';
import type { Draft } from '../domain/aggregate/containers.js';
import { BrokenChainError } from '../domain/log-chain/links.js';
import { UnknownEventError } from '../domain/log/upcast.js';
import type { Refusal } from '../domain/resource/refusal.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError, errorText, unreachable } from '../kernel/errors.js';
import type { EventMetadata, IdempotencyMark, RecordedCommand, ProposedEvent } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import type { LogChain } from '../security/log-chain/log-chain.js';
import { BrokenLogError } from '../storage/broken-log.js';
import type { Aggregate, DecidingState } from './aggregate.js';
import type { Committed } from './port.js';
import { asRecorded, measured, unmarkedEvents, withMarks, type Proposal } from './proposal.js';
import type { CallAnswer, Call } from './waiting-callers.js';
import { sleep } from '../kernel/background.js';
import type { Logger } from '../kernel/logger.js';
import { backoff } from '../kernel/retry.js';
import type { EventStore } from '../storage/event-store.js';
import { tuning } from './tuning.js';

export interface DecideGroupOptions {
  readonly clock: Clock;
  readonly ids: Ids;
  /** See `GatewayOptions`. */
  readonly sharedTime: () => number;
  readonly logChain: LogChain;
}

/** The decision for one call. */
export type Decided =
  | {
      readonly kind: 'write';
      readonly proposal: Proposal;
      readonly recorded: RecordedCommand;
      readonly result: unknown;
    }
  | { readonly kind: 'answer'; readonly answer: CallAnswer };

/**
 * @returns a function that decides calls in order, as many as one append may hold, at least one, with one result each.
 *   Yields between two pieces, and leaves no trace when it is abandoned
 */
export function createDecideGroup<State extends DecidingState, Command>(
  { stream, draft, decide, apply }: Aggregate<State, Command>,
  committed: Committed<State>,
  { clock, ids, sharedTime, logChain }: DecideGroupOptions,
): (calls: Iterable<Call<State, Command>>) => Generator<void, readonly Decided[]> {
  let of: State | undefined;
  /** The state after the group so far, and after the command that is being decided. */
  let group: Draft<State>;
  let one: Draft<State>;

  function* decideOne({ command, context, select }: Call<State, Command>): Generator<void, Decided> {
    const { state } = one;
    const answered = (answer: CallAnswer): Decided => ({ kind: 'answer', answer });
    const unchanged = (): Decided => {
      const position = committed.state().position.value;
      return answered({ kind: 'done', commandId: '', events: [], position, result: select(state) });
    };
    if (command === undefined || context === undefined) return unchanged();
    if (context.ended?.() === true) throw new ServiceError('unauthenticated', 'the token has ended');
    const repeat = context.idempotency === undefined ? undefined : repeatOf(state, context.idempotency, sharedTime());
    if (repeat !== undefined) return answered(repeat);
    const decision = yield* decide(state, command);
    if (!decision.ok) return answered(refusedBy(decision.error));
    if (decision.value.length === 0) return unchanged();
    const [revision, before] = [state.revision.value, state.logChain.value];
    const events = unmarkedEvents(decision.value, context, clock, ids);
    const applied = yield* apply(state, asRecorded(stream, { events }, revision));
    if (applied.refusal !== undefined) return answered(refusedBy(applied.refusal));
    const touched = named(applied.touched);
    const { link, head } = logChain.link(before, stream, withMarks(events, { touched }));
    const proposal = measured(withMarks(events, { touched, link }));
    state.logChain.set(head);
    const recorded = asRecorded(stream, proposal, revision);
    return { kind: 'write', proposal, recorded, result: select(state) };
  }

  function* decideAlone(call: Call<State, Command>): Generator<void, Decided> {
    try {
      return yield* decideOne(call);
    } catch (error) {
      return { kind: 'answer', answer: { kind: 'refused', error: asServiceError(error) } };
    }
  }

  return function* decideGroup(calls) {
    if (of !== committed.state()) {
      of = committed.state();
      group = draft(of);
      one = draft(group.state);
    }
    const decided: Decided[] = [];
    let events = 0;
    let bytes = 0;
    try {
      for (const call of calls) {
        if (decided.length >= limits.events.appendEvents) break;
        const next = yield* decideAlone(call);
        if (next.kind === 'write') {
          events += next.proposal.events.length;
          bytes += next.proposal.bytes;
          const full = events > limits.events.appendEvents || bytes > limits.events.appendBytes;
          if (full && decided.length > 0) break;
          one.merge();
        } else one.drop();
        decided.push(next);
      }
      return decided;
    } finally {
      one.drop();
      group.drop();
    }
  };
}

/** Touched nodes as metadata, which stays small however many there are. */
function named(touched: ReadonlySet<string>): EventMetadata['touched'] {
  if (touched.size === 0) return undefined;
  return touched.size > limits.events.touchedNodes ? 'all' : [...touched];
}

/** The answer to an idempotency key that was used before, or undefined. */
function repeatOf(state: DecidingState, { key_hash, body_hash }: IdempotencyMark, now: number): CallAnswer | undefined {
  const accepted = acceptedKey(state.idempotency, key_hash, now);
  if (accepted === undefined) return undefined;
  if (accepted.body_hash !== body_hash) {
    const message =
      'Idempotency-Key: it was used with another body within the last 24 hours; expected a new key or the same body';
    return refusedBy({ code: 'conflict', message });
  }
  const { command_id: commandId, resource_id: resourceId, revision } = accepted;
  return { kind: 'repeated', commandId, resourceId, revision };
}

const refusedBy = ({ code, message }: Refusal): CallAnswer => ({
  kind: 'refused',
  error: new ServiceError(code, message),
});

/** The error that a caller may see, whatever was thrown. */
export function asServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const stops = [UnknownEventError, BrokenChainError, BrokenLogError].some((kind) => error instanceof kind);
  if (stops && error instanceof Error) {
    return new ServiceError('unavailable', `this instance is read-only: ${error.message}`);
  }
  return new ServiceError('internal', 'the command could not be carried out', { cause: error });
}

export type GroupOutcome =
  /** The events follow the expected revision. `position` is that of the last one or a later one. */
  | { readonly kind: 'appended'; readonly position: number }
  /** Other events have taken their place, so the group will never be written. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'unavailable'; readonly cause: string }
  /** The group may have been written, or may still be. */
  | { readonly kind: 'unknown' };

export interface AppendGroupOptions {
  readonly eventStore: EventStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends the retries: the log is read once more, then the outcome is `unknown`. */
  readonly signal: AbortSignal;
}

/**
 * Appends within bounds of tries and time.
 * @param expected revision to append after; -1 for a stream without events
 */
export async function appendGroup(
  options: AppendGroupOptions,
  stream: string,
  expected: number,
  events: readonly ProposedEvent[],
): Promise<GroupOutcome> {
  const { eventStore, clock, logger, signal } = options;
  const started = clock.monotonic();
  // After an unknown answer, only "appended" settles earlier tries.
  let uncertain = false;
  for (let tries = 1; ; tries += 1) {
    const outcome = await eventStore.append(stream, expected < 0 ? 'no_stream' : expected, events);
    switch (outcome.kind) {
      case 'appended':
        if (outcome.position !== undefined) return { kind: 'appended', position: outcome.position };
        break;
      case 'conflict':
        if (!uncertain) return { kind: 'conflict' };
        break;
      case 'unavailable':
      case 'refused':
        logger.warn({ stream, cause: outcome.cause, tries }, 'the event store refused an append');
        if (!uncertain) return { kind: 'unavailable', cause: outcome.cause };
        break;
      case 'unknown':
        logger.warn(
          { stream, cause: outcome.cause, tries },
          'the outcome of an append is unknown; searching for its events',
        );
        break;
      default:
        return unreachable(outcome);
    }
    uncertain = true;
    const written = await search(options, stream, expected, events);
    if (written.kind !== 'nothing') return written;
    const waitedMs = clock.monotonic() - started;
    if (signal.aborted || tries >= tuning.gatewayAttempts || waitedMs >= tuning.outcomeWaitMs) {
      return { kind: 'unknown' };
    }
    await sleep(backoff(tuning.outcomeRetry, tries), signal);
  }
}

type Written = Extract<GroupOutcome, { readonly kind: 'appended' | 'conflict' }> | { readonly kind: 'nothing' };

/** Looks up what the log holds in place of the group. An append is atomic, so its first event is proof for all. */
async function search(
  { eventStore, logger }: AppendGroupOptions,
  stream: string,
  expected: number,
  events: readonly ProposedEvent[],
): Promise<Written> {
  try {
    let position: number | undefined;
    const range = { direction: 'forward', from: expected + 1, maxCount: events.length } as const;
    for await (const event of eventStore.read(stream, range)) {
      if (position === undefined && event.id !== events[0]?.id) return { kind: 'conflict' };
      position = event.position;
    }
    return position === undefined ? { kind: 'nothing' } : { kind: 'appended', position };
  } catch (error) {
    logger.warn({ stream, error: errorText(error) }, 'the log could not be read while searching for an append');
    return { kind: 'nothing' };
  }
}

/**
 * The fold on which a gateway decides: it holds the events of the commands before, durable or not, and gives up those
 * that were not written. It reads the log but does not append to it. Implements
 * `docs/contract/domain.md#commands-and-events`.
 */
import { acceptedKey } from '../domain/aggregate/idempotency.js';
import { BrokenChainError } from '../domain/log-chain/links.js';
import { UnknownEventError } from '../domain/log/unknown-event.js';
import { readCommand } from '../domain/log/upcast.js';
import type { Refusal } from '../domain/resource/refusal.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import type { IdempotencyMark, RecordedCommand } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import type { LogChain } from '../log-chain/log-chain.js';
import type { EventStore } from '../storage/event-store.js';
import { firstFrom } from '../storage/event-store.js';
import { BrokenLogError, createCommandAssembler } from '../storage/follow.js';
import type { Aggregate, DecidingState } from './aggregate.js';
import type { Proposal } from './proposal.js';
import { asRecorded, propose } from './proposal.js';
import type { Answer, Call } from './waiting-callers.js';

export interface DecidingFoldOptions {
  readonly eventStore: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  /** See `GatewayOptions`. */
  readonly sharedTime: () => number;
  readonly logChain: LogChain;
}

/** A command that was decided on the fold with the events of the commands before it. */
export type Decided =
  | {
      readonly kind: 'write';
      readonly proposal: Proposal;
      readonly recorded: RecordedCommand;
      readonly result: unknown;
    }
  | { readonly kind: 'answer'; readonly answer: Answer };

export interface DecidingFold<State, Command> {
  /** Of the last event in the fold; -1 for an empty stream. */
  revision(): number;
  /** Position of the newest event that this gateway has read or written. */
  newestPosition(): number;
  /** Folds what the log holds behind the fold: events of other instances, or own events whose answer was lost. */
  catchUp(): Promise<void>;
  /** True when the log holds events behind the fold. */
  isBehind(): Promise<boolean>;
  /**
   * Decides calls in order, as many as one append may hold, at least one.
   * @param most how many calls at most
   * @returns one result per decided call
   */
  decideGroup(calls: Iterable<Call<State, Command>>, most: number): readonly Decided[];
  /** What was decided is durable; its last event has this position, or a lower one. */
  commit(position: number): void;
  /** What was decided is not written. */
  rollback(): void;
}

export function createDecidingFold<State extends DecidingState, Command>(
  { stream, state, decide, apply }: Aggregate<State, Command>,
  { eventStore, clock, ids, sharedTime, logChain }: DecidingFoldOptions,
): DecidingFold<State, Command> {
  let newestPosition = state.position.value;
  // A fold that was handed over is never rolled back.
  state.journal.commit();

  function decideOne({ command, context, select }: Call<State, Command>): Decided {
    const answered = (answer: Answer): Decided => ({ kind: 'answer', answer });
    const mark = state.journal.mark();
    try {
      if (command === undefined || context === undefined) {
        return answered({ kind: 'unchanged', position: newestPosition, result: select(state) });
      }
      const repeat = context.idempotency === undefined ? undefined : repeatOf(context.idempotency);
      if (repeat !== undefined) return answered(repeat);
      const decision = decide(state, command);
      if (!decision.ok) return answered(refusedBy(decision.error));
      if (decision.value.length === 0) {
        return answered({ kind: 'unchanged', position: newestPosition, result: select(state) });
      }
      const before = state.logChain.value;
      let head = before;
      const proposal = propose(decision.value, context, clock, ids, (events) => {
        const linked = logChain.link(head, stream, events);
        head = linked.head;
        return linked.link;
      });
      const recorded = asRecorded(stream, proposal, state.revision.value);
      const refusal = apply(state, recorded);
      state.logChain.set(head);
      if (refusal === undefined) {
        logChain.remember({ stream, events: proposal.events, before, after: head });
        return { kind: 'write', proposal, recorded, result: select(state) };
      }
      state.journal.rollback(mark);
      return answered(refusedBy(refusal));
    } catch (error) {
      state.journal.rollback(mark);
      return answered({ kind: 'refused', error: asServiceError(error) });
    }
  }

  /** The answer to an idempotency key that was used before, or undefined. */
  function repeatOf({ key_hash, body_hash }: IdempotencyMark): Answer | undefined {
    const accepted = acceptedKey(state.idempotency, key_hash, sharedTime());
    if (accepted === undefined) return undefined;
    if (accepted.body_hash !== body_hash) {
      const message =
        'Idempotency-Key: it was used with another body within the last 24 hours; expected a new key or the same body';
      return refusedBy({ code: 'conflict', message });
    }
    const { command_id: commandId, resource_id: resourceId, revision } = accepted;
    return { kind: 'repeated', commandId, resourceId, revision };
  }

  return {
    revision: () => state.revision.value,
    newestPosition: () => newestPosition,
    async catchUp() {
      const assembler = createCommandAssembler();
      const rest = { direction: 'forward', from: state.revision.value + 1, maxCount: Number.MAX_SAFE_INTEGER } as const;
      for await (const event of eventStore.read(stream, rest)) {
        newestPosition = Math.max(newestPosition, event.position);
        for (const command of assembler.add([event])) {
          const head = logChain.follow(state.logChain.value, command);
          apply(state, readCommand(command));
          state.logChain.set(head);
          state.journal.commit();
        }
      }
    },
    async isBehind() {
      return (await firstFrom(eventStore, stream, state.revision.value + 1)) !== undefined;
    },
    decideGroup(calls, most) {
      const group: Decided[] = [];
      let events = 0;
      let bytes = 0;
      for (const call of calls) {
        if (group.length >= Math.min(most, limits.events.appendEvents)) break;
        const mark = state.journal.mark();
        const decided = decideOne(call);
        if (decided.kind === 'write') {
          events += decided.proposal.events.length;
          bytes += decided.proposal.bytes;
          const full = events > limits.events.appendEvents || bytes > limits.events.appendBytes;
          if (full && group.length > 0) {
            state.journal.rollback(mark);
            break;
          }
        }
        group.push(decided);
      }
      return group;
    },
    commit(position) {
      state.journal.commit();
      newestPosition = Math.max(newestPosition, position);
    },
    rollback: () => state.journal.rollback(0),
  };
}

const refusedBy = ({ code, message }: Refusal): Answer => ({ kind: 'refused', error: new ServiceError(code, message) });

/** What a caller may see of anything that was thrown. */
export function asServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const stops = [UnknownEventError, BrokenChainError, BrokenLogError].some((kind) => error instanceof kind);
  if (stops && error instanceof Error) {
    return new ServiceError('unavailable', `this instance is read-only: ${error.message}`);
  }
  return new ServiceError('internal', 'the command could not be carried out', { cause: error });
}

/**
 * Runs the commands of one stream: one after the other on the deciding fold, those that wait appended together, rolled
 * back and decided again on a conflict. Knows nothing of what commands mean. Implements `docs/contract/domain.md#commands-and-events`.
 *
 * An answer that writes nothing (a refusal, a no-change, a repeat) is given only after a look at the log's tail: another
 * instance may have moved on. An answer that writes is guarded by the expected revision.
 */
import { acceptedKey } from '../domain/aggregate/idempotency.js';
import type { Refusal } from '../domain/resource/refusal.js';
import { UnknownEventError } from '../domain/log/unknown-event.js';
import { readCommand } from '../domain/log/upcast.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError, unreachable } from '../kernel/errors.js';
import type { RecordedEvent } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import type { EventStore } from '../storage/event-store.js';
import { firstFrom } from '../storage/event-store.js';
import { createCommandAssembler } from '../storage/follow.js';
import type { Aggregate, DecidingState } from './aggregate.js';
import { appendGroup } from './append-group.js';
import type { CommandContext, CommandOutcome, Gateway, ProjectionWait } from './port.js';
import type { Proposal } from './proposal.js';
import { asRecorded, propose } from './proposal.js';
import { tuning } from './tuning.js';

export interface GatewayOptions {
  readonly eventStore: EventStore;
  readonly projections: ProjectionWait;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  /** A reason why nothing may be written now (an event that this release does not know), or undefined. */
  readonly readOnly: () => string | undefined;
}

/** One caller who waits. */
interface Waiting<State, Command> {
  readonly command: Command;
  readonly context: CommandContext;
  readonly select: (state: State) => unknown;
  readonly settle: (verdict: Verdict) => void;
}

type Verdict =
  | {
      readonly kind: 'written';
      readonly proposal: Proposal;
      readonly revision: number;
      readonly position: number;
      readonly result: unknown;
    }
  | { readonly kind: 'unchanged'; readonly result: unknown; readonly position: number }
  | { readonly kind: 'repeated'; readonly commandId: string; readonly resourceId: string; readonly revision: number }
  | { readonly kind: 'refused'; readonly error: ServiceError };

/** A command after it was decided on the fold with its predecessors' events in it. */
type Decided =
  | { readonly kind: 'write'; readonly proposal: Proposal; readonly revision: number; readonly result: unknown }
  | { readonly kind: 'answer'; readonly verdict: Verdict };

const refusedBy = (refusal: Refusal): Verdict => ({
  kind: 'refused',
  error: new ServiceError(refusal.code, refusal.message),
});

/** Starts a gateway; reads the stream's tail first. @throws ServiceError `unavailable`, UnknownEventError */
export async function createGateway<State extends DecidingState, Command>(
  aggregate: Aggregate<State, Command>,
  options: GatewayOptions,
): Promise<Gateway<State, Command>> {
  const { eventStore, clock, logger } = options;
  const { stream, state } = aggregate;
  const queue: Waiting<State, Command>[] = [];
  const stop = new AbortController();
  let newestPosition = state.position.value;
  let running: Promise<void> | undefined;
  /** So many at the head of the queue are in the group that is being appended. */
  let underWay = 0;

  /** Folds what others, or a lost answer of our own, have put behind the fold. */
  async function catchUp(): Promise<void> {
    const assembler = createCommandAssembler();
    const rest = { direction: 'forward', from: state.revision.value + 1, maxCount: Number.MAX_SAFE_INTEGER } as const;
    for await (const event of eventStore.read(stream, rest)) {
      newestPosition = Math.max(newestPosition, event.position);
      for (const command of assembler.add([event])) {
        aggregate.apply(state, readCommand(command));
        state.journal.commit();
      }
    }
  }

  function decide(waiting: Waiting<State, Command>): Decided {
    const answer = (verdict: Verdict): Decided => ({ kind: 'answer', verdict });
    const mark = state.journal.mark();
    try {
      const key = waiting.context.idempotency;
      const accepted = key === undefined ? undefined : acceptedKey(state.idempotency, key.key_hash, clock.now());
      if (key !== undefined && accepted !== undefined) {
        if (accepted.body_hash !== key.body_hash) {
          const message =
            'Idempotency-Key: it was used with another body within the last 24 hours; expected a new key or the same body';
          return answer(refusedBy({ code: 'conflict', message }));
        }
        const { command_id, resource_id, revision } = accepted;
        return answer({ kind: 'repeated', commandId: command_id, resourceId: resource_id, revision });
      }
      const decision = aggregate.decide(state, waiting.command);
      if (!decision.ok) return answer(refusedBy(decision.error));
      if (decision.value.length === 0) {
        return answer({ kind: 'unchanged', result: waiting.select(state), position: newestPosition });
      }
      const proposal = propose(decision.value, waiting.context, clock, options.ids);
      const revision = state.revision.value + proposal.events.length;
      const refusal = aggregate.apply(state, asRecorded(stream, proposal, state.revision.value));
      if (refusal !== undefined) {
        state.journal.rollback(mark);
        return answer(refusedBy(refusal));
      }
      return { kind: 'write', proposal, revision, result: waiting.select(state) };
    } catch (error) {
      state.journal.rollback(mark);
      return answer({ kind: 'refused', error: asServiceError(error) });
    }
  }

  /** Takes as many waiting commands as one append may hold, in order, and decides each. */
  function decideGroup(): {
    readonly members: readonly (readonly [Waiting<State, Command>, Decided])[];
    readonly taken: number;
  } {
    const members: (readonly [Waiting<State, Command>, Decided])[] = [];
    let events = 0;
    let bytes = 0;
    for (const waiting of queue) {
      if (members.length >= limits.events.appendEvents) break;
      const mark = state.journal.mark();
      const decided = decide(waiting);
      if (decided.kind === 'write') {
        events += decided.proposal.events.length;
        bytes += decided.proposal.bytes;
        const full = events > limits.events.appendEvents || bytes > limits.events.appendBytes;
        if (full && members.length > 0) {
          state.journal.rollback(mark);
          break;
        }
      }
      members.push([waiting, decided]);
    }
    return { members, taken: members.length };
  }

  /** One group, from deciding to durable. Every member is settled, or the group stays queued to be decided again. */
  async function runGroup(attempt: number): Promise<'settled' | 'again'> {
    const expected = state.revision.value;
    const { members, taken } = decideGroup();
    underWay = taken;
    const events = members.flatMap(([, decided]) => (decided.kind === 'write' ? decided.proposal.events : []));
    const settleAll = (position: number): 'settled' => {
      state.journal.commit();
      queue.splice(0, taken);
      newestPosition = Math.max(newestPosition, position);
      for (const [waiting, decided] of members) {
        if (decided.kind === 'answer') waiting.settle(decided.verdict);
        else waiting.settle({ ...decided, kind: 'written', position: newestPosition });
      }
      return 'settled';
    };
    const failAll = (message: string): 'settled' => {
      state.journal.rollback(0);
      queue.splice(0, taken);
      const error = new ServiceError('unavailable', message);
      for (const [waiting] of members) waiting.settle({ kind: 'refused', error });
      return 'settled';
    };
    const movedOn = async (): Promise<'settled' | 'again'> => {
      state.journal.rollback(0);
      if (attempt >= tuning.gatewayAttempts) {
        return failAll('the log moved on at every try; nothing was written');
      }
      await catchUp();
      return 'again';
    };

    // Answers that write nothing hold only if the log has not moved on. Beside one that writes, its append tells.
    if (events.length === 0) return (await hasMore(expected)) ? movedOn() : settleAll(newestPosition);
    const outcome = await appendGroup({ eventStore, clock, logger, signal: stop.signal }, stream, expected, events);
    switch (outcome.kind) {
      case 'appended':
        return settleAll(outcome.position);
      case 'conflict':
        return movedOn();
      case 'unavailable':
        return failAll('the event store is out of reach; nothing was written');
      case 'unknown':
        return failAll('the event store did not say whether the change was written; it may have been');
      default:
        return unreachable(outcome);
    }
  }

  async function hasMore(revision: number): Promise<boolean> {
    return (await firstFrom(eventStore, stream, revision + 1)) !== undefined;
  }

  /** The end of a command that was accepted before, found from its first event: it is read back. */
  async function endOf(revision: number): Promise<{ readonly revision: number; readonly position: number }> {
    const first = await firstFrom(eventStore, stream, revision);
    if (first === undefined) return { revision, position: newestPosition };
    const { index, count } = first.metadata.command;
    const last = index + 1 === count ? first : await firstFrom(eventStore, stream, revision + count - 1 - index);
    return last ?? first;
  }

  async function run(): Promise<void> {
    let attempt = 0;
    while (queue.length > 0) {
      underWay = 0;
      try {
        attempt = (await runGroup(attempt)) === 'again' ? attempt + 1 : 0;
      } catch (error) {
        // The log could not be read, or holds what this release does not know: whoever waits is told, none is lost.
        state.journal.rollback(0);
        const failure = asServiceError(error);
        for (const waiting of queue.splice(0)) waiting.settle({ kind: 'refused', error: failure });
        attempt = 0;
      }
    }
    // In the same turn as the last look at the queue: whoever comes later starts the next run.
    running = undefined;
  }

  function enqueue(waiting: Waiting<State, Command>): void {
    queue.push(waiting);
    running ??= Promise.resolve().then(run);
  }

  /**
   * The verdict, or in time that there is none: what became of an append may stay unknown for much longer than anybody
   * waits. The group under way goes on without its callers; a command that still queues is taken out.
   */
  function verdictOn(asked: Omit<Waiting<State, Command>, 'settle'>): Promise<Verdict> {
    return new Promise((resolve) => {
      const waiting: Waiting<State, Command> = {
        ...asked,
        settle(verdict) {
          clearTimeout(timer);
          resolve(verdict);
        },
      };
      const timer = setTimeout(() => {
        const at = queue.indexOf(waiting);
        const mayBeWritten = at < underWay;
        if (!mayBeWritten) queue.splice(at, 1);
        const error = new ServiceError(
          'unavailable',
          mayBeWritten
            ? 'the event store did not say in time whether the change was written; it may have been'
            : 'the event store does not answer; nothing was written',
        );
        resolve({ kind: 'refused', error });
      }, tuning.commandAnswerMs);
      enqueue(waiting);
    });
  }

  // What was handed over is never taken back.
  state.journal.commit();
  await catchUp();
  return {
    async execute<R>(
      command: Command,
      context: CommandContext,
      select: (state: State) => R,
    ): Promise<CommandOutcome<R>> {
      const readOnly = options.readOnly();
      if (stop.signal.aborted || readOnly !== undefined) {
        throw new ServiceError('unavailable', readOnly ?? 'the service is shutting down');
      }
      if (queue.length >= tuning.gatewayQueue) {
        throw new ServiceError('unavailable', 'too many commands are waiting; nothing was written');
      }
      const verdict = await verdictOn({ command, context, select });
      switch (verdict.kind) {
        case 'written': {
          const { proposal, revision, position } = verdict;
          const events: readonly RecordedEvent[] = asRecorded(
            stream,
            proposal,
            revision - proposal.events.length,
          ).events;
          const applied = await options.projections.applied(stream, revision, limits.rest.projectionWaitMs);
          return {
            kind: 'done',
            commandId: proposal.commandId,
            events,
            position,
            result: verdict.result as R,
            lagging: !applied,
          };
        }
        case 'unchanged': {
          const { position } = verdict;
          return { kind: 'done', commandId: '', events: [], position, result: verdict.result as R, lagging: false };
        }
        case 'repeated': {
          const { commandId, resourceId } = verdict;
          const { revision, position } = await endOf(verdict.revision);
          const applied = await options.projections.applied(stream, revision, limits.rest.projectionWaitMs);
          return { kind: 'repeated', commandId, resourceId, position, lagging: !applied };
        }
        case 'refused':
          throw verdict.error;
        default:
          return unreachable(verdict);
      }
    },
    async close() {
      stop.abort();
      await running;
    },
  };
}

function asServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  if (error instanceof UnknownEventError)
    return new ServiceError('unavailable', `this instance is read-only: ${error.message}`);
  return new ServiceError('internal', 'the command could not be carried out', { cause: error });
}

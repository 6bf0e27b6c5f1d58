/**
 * Runs the commands of one stream in order. Waiting commands form a group, which is decided and appended at once
 * (`group.ts`), and folded into the committed state once the log has it. If another instance writes first, the group is
 * decided again. Knows nothing about the meaning of commands. Implements `docs/contract/domain.md#commands-and-events`.
 *
 * An answer that writes nothing (a refusal, a no-change, a repeat) is valid only if no other instance has written. The
 * append's expected revision proves that if another command of the group writes; otherwise the end of the log is read
 * first.
 */
import { readCommand } from '../domain/log/upcast.js';
import { sleep, yieldToEventLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError, unreachable } from '../kernel/errors.js';
import { isForeign, lastEvent, type RecordedCommand } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import { backoff } from '../kernel/retry.js';
import type { LogChain } from '../security/log-chain/log-chain.js';
import { firstFrom, type EventStore } from '../storage/event-store.js';
import { createCommandAssembler } from '../storage/follow.js';
import { awayBecause } from '../storage/store-access.js';
import type { Aggregate, DecidingState } from './aggregate.js';
import { appendGroup, asServiceError, createDecideGroup, type GroupOutcome, type Decided } from './group.js';
import { inPieces } from './in-pieces.js';
import type { CommandContext, CommandOutcome, Committed, Gateway } from './port.js';
import { tuning } from './tuning.js';
import { createWaitingCallers, type CallAnswer, type Call, type WaitingCallers } from './waiting-callers.js';

export interface GatewayOptions {
  readonly eventStore: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly logChain: LogChain;
  /** Why nothing may be written now (an unknown event, a wrong clock), or undefined. */
  readonly readOnly: () => string | undefined;
  /**
   * The time by which idempotency keys age, in milliseconds since the epoch; never ahead because of this instance's
   * clock.
   */
  readonly sharedTime: () => number;
}

/** Writes what is waiting, in groups. @param stop ends the waits @returns a function that settles the queue's head */
function createGroups<State extends DecidingState, Command>(
  aggregate: Aggregate<State, Command>,
  committed: Committed<State>,
  options: GatewayOptions,
  callers: WaitingCallers<State, Command>,
  stop: AbortSignal,
): () => Promise<void> {
  const { eventStore, clock, logger } = options;
  const { stream } = aggregate;
  const decide = createDecideGroup(aggregate, committed, options);
  const position = (): number => committed.state().position.value;

  /** Appends the events of a group. A group without events is valid only at the end of the log, like an empty append. */
  async function append(expected: number, group: readonly Decided[]): Promise<GroupOutcome> {
    const events = group.flatMap((decided) => (decided.kind === 'write' ? decided.proposal.events : []));
    if (events.length > 0) {
      return appendGroup({ eventStore, clock, logger, signal: stop }, stream, expected, events);
    }
    const isBehind = (await firstFrom(eventStore, stream, committed.state().revision.value + 1)) !== undefined;
    return isBehind ? { kind: 'conflict' } : { kind: 'appended', position: position() };
  }

  /**
   * @param lost how many tries another writer has won
   * @returns `late` if a caller timed out before the decision and was told that nothing was written; `unchanged` after a
   * conflict without new events in the log
   */
  async function tryGroup(lost: number): Promise<'settled' | 'late' | 'lost' | 'unchanged'> {
    const waiting = callers.all().slice(0, limits.events.appendEvents);
    const group = await inPieces(committed.state, () => decide(waiting));
    const members = waiting.slice(0, group.length);
    if (members.some((caller, index) => caller !== callers.all()[index])) return 'late';
    const expected = committed.state().revision.value;
    callers.beginGroup(group.length);
    const settle = (answerOf: (decided: Decided) => CallAnswer): 'settled' => {
      callers.endGroup();
      for (const [index, decided] of group.entries()) members[index]?.answer(answerOf(decided));
      return 'settled';
    };
    const fail = (message: string): 'settled' =>
      settle(() => ({ kind: 'refused', error: new ServiceError('unavailable', message) }));
    const outcome = await append(expected, group);
    switch (outcome.kind) {
      case 'appended': {
        const end = Math.max(outcome.position, position());
        const written = group.flatMap((decided) => (decided.kind === 'write' ? [at(decided.recorded, end)] : []));
        if (written.length > 0) await committed.apply(written);
        return settle((decided) => finalAnswer(decided, end));
      }
      case 'conflict':
        if (lost >= tuning.gatewayAttempts) return fail('the log moved on at every try; nothing was written');
        if (stop.aborted) return fail('the service is shutting down; nothing was written');
        // Nothing was written, which a caller who times out from now on may be told.
        callers.beginGroup(0);
        await committed.catchUp();
        return committed.state().revision.value > expected ? 'lost' : 'unchanged';
      case 'unavailable':
        return fail(`${awayBecause('event store', outcome.cause)}; nothing was written`);
      case 'unknown':
        return fail('the event store did not say whether the change was written; it may have been');
      default:
        return unreachable(outcome);
    }
  }

  /**
   * Tries until the head of the queue is settled. An `unchanged` conflict does not count as a try: a leader after a
   * pause refuses because of accepted events that no read shows yet. Ends when the callers time out.
   */
  async function settleGroup(): Promise<void> {
    let lost = 0;
    for (let unchanged = 0; callers.count > 0;) {
      const outcome = await tryGroup(lost);
      if (outcome === 'settled') return;
      if (outcome === 'late') continue;
      if (outcome === 'lost') [lost, unchanged] = [lost + 1, 0];
      else {
        await sleep(backoff(tuning.unchangedRetry, unchanged), stop);
        unchanged += 1;
      }
    }
  }

  return settleGroup;
}

export function createGateway<State extends DecidingState, Command>(
  aggregate: Aggregate<State, Command>,
  committed: Committed<State>,
  options: GatewayOptions,
): Gateway<State, Command> {
  const { eventStore } = options;
  const { stream } = aggregate;
  const stop = new AbortController();
  const callers = createWaitingCallers<State, Command>();
  const settleGroup = createGroups(aggregate, committed, options, callers, stop.signal);
  let running: Promise<void> | undefined;
  /** Resolves when nobody works alone. */
  let alone = Promise.resolve();

  /** Never rejects. */
  async function run(): Promise<void> {
    while (callers.count > 0) {
      await alone;
      try {
        await settleGroup();
      } catch (error) {
        // The log cannot be read, or holds an unknown event; every caller still gets an answer.
        callers.refuseAll(asServiceError(error));
      }
    }
    // No await since the queue was found empty: the next caller starts a new run.
    running = undefined;
  }

  /** @throws ServiceError: the refusal, or `unavailable` */
  async function outcomeOf(call: Call<State, Command>): Promise<CommandOutcome<unknown>> {
    const readOnly = options.readOnly();
    if (stop.signal.aborted || readOnly !== undefined) {
      throw new ServiceError('unavailable', readOnly ?? 'the service is shutting down');
    }
    if (callers.count >= tuning.gatewayQueue) {
      throw new ServiceError('unavailable', 'too many commands are waiting; nothing was written');
    }
    const answered = callers.add(call);
    // After this turn of the event loop, so that its callers share an append and its flush.
    running ??= yieldToEventLoop().then(run);
    const answer = await answered;
    switch (answer.kind) {
      case 'done':
        return answer;
      case 'repeated': {
        const { commandId, resourceId, revision } = answer;
        const command = await firstOf(commandsFrom(eventStore, stream, revision));
        const end = command === undefined ? committed.state().position.value : lastEvent(command).position;
        return { kind: 'repeated', commandId, resourceId, command, position: end };
      }
      case 'refused':
        throw answer.error;
      default:
        return unreachable(answer);
    }
  }

  return {
    commandsFrom: (revision) => commandsFrom(eventStore, stream, revision),
    async execute<R>(
      command: Command,
      context: CommandContext,
      select: (state: State) => R,
    ): Promise<CommandOutcome<R>> {
      // `select` made the result.
      return (await outcomeOf({ command, context, select })) as CommandOutcome<R>;
    },
    async read<R>(select: (state: State) => R): Promise<R> {
      const outcome = await outcomeOf({ command: undefined, context: undefined, select });
      if (outcome.kind !== 'done') throw new Error('a read repeats no command');
      return outcome.result as R;
    },
    async alone(work) {
      const turn = alone.then(work);
      alone = turn.catch(() => undefined);
      await turn;
    },
    async close() {
      stop.abort();
      await running;
    },
  };
}

async function* commandsFrom(
  eventStore: EventStore,
  stream: string,
  revision: number,
): AsyncGenerator<RecordedCommand> {
  const assembler = createCommandAssembler();
  const options = { direction: 'forward', from: revision, maxCount: Number.MAX_SAFE_INTEGER } as const;
  for await (const event of eventStore.read(stream, options)) {
    // An instance is read-only at a foreign event, so none of its own events follow.
    if (isForeign(event)) return;
    yield* assembler.add([event]).map(readCommand);
  }
}

/** A command at the position of its group's last event. */
function at({ stream, events: [first, ...rest] }: RecordedCommand, position: number): RecordedCommand {
  return { stream, events: [{ ...first, position }, ...rest.map((event) => ({ ...event, position }))] };
}

function finalAnswer(decided: Decided, position: number): CallAnswer {
  if (decided.kind === 'answer') return decided.answer;
  const { proposal, recorded, result } = decided;
  return { kind: 'done', commandId: proposal.commandId, events: recorded.events, position, result };
}

async function firstOf<T>(items: AsyncIterable<T>): Promise<T | undefined> {
  for await (const item of items) return item;
  return undefined;
}

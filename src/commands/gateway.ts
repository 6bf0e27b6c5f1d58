/**
 * Runs the commands of one stream, one after the other: those that wait together form a group, which is decided and
 * appended at once (`run-group.ts`), and folded into the committed state as soon as the log has it. Knows nothing of what
 * commands mean. Implements `docs/contract/domain.md#commands-and-events`.
 */
import { yieldToEventLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError, unreachable } from '../kernel/errors.js';
import type { Ids } from '../kernel/ids.js';
import type { Logger } from '../kernel/logger.js';
import type { LogChain } from '../security/log-chain/log-chain.js';
import type { EventStore } from '../storage/event-store.js';
import { firstFrom } from '../storage/event-store.js';
import type { Aggregate, DecidingState } from './aggregate.js';
import { appendGroup } from './append-group.js';
import { createDecideGroup } from './decide-group.js';
import type { CommandContext, CommandOutcome, Committed, Gateway } from './port.js';
import { runGroup } from './run-group.js';
import { tuning } from './tuning.js';
import type { Answer, Call } from './waiting-callers.js';
import { createWaitingCallers } from './waiting-callers.js';

export interface GatewayOptions {
  readonly eventStore: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly logChain: LogChain;
  /** A reason why nothing may be written now (an unknown event, a wrong clock), or undefined. */
  readonly readOnly: () => string | undefined;
  /**
   * Now, in milliseconds since the epoch, not ahead because this instance's clock is: judges the age of idempotency
   * keys.
   */
  readonly sharedTime: () => number;
}

export function createGateway<State extends DecidingState, Command>(
  aggregate: Aggregate<State, Command>,
  committed: Committed<State>,
  options: GatewayOptions,
): Gateway<State, Command> {
  const { eventStore, clock, logger } = options;
  const { stream } = aggregate;
  const stop = new AbortController();
  const callers = createWaitingCallers<State, Command>();
  const position = (): number => committed.state().position.value;
  const group = {
    committed,
    callers,
    decide: createDecideGroup(aggregate, committed, options),
    append: (expected: number, events: Parameters<typeof appendGroup>[3]) =>
      appendGroup({ eventStore, clock, logger, signal: stop.signal }, stream, expected, events),
    isBehind: async () => (await firstFrom(eventStore, stream, committed.state().revision.value + 1)) !== undefined,
  };
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (callers.count > 0) await runGroup(group);
    // No await since the queue was found empty: the next caller starts a new run.
    running = undefined;
  }

  /** Where a command that was accepted before ends, read from the log. @param revision of its first event */
  async function endOfCommand(revision: number): Promise<number> {
    const first = await firstFrom(eventStore, stream, revision);
    if (first === undefined) return position();
    const { index, count } = first.metadata.command;
    const last = index + 1 === count ? first : await firstFrom(eventStore, stream, revision + count - 1 - index);
    return (last ?? first).position;
  }

  /** @throws ServiceError: the refusal */
  async function outcomeOf(answer: Answer): Promise<CommandOutcome<unknown>> {
    switch (answer.kind) {
      case 'written': {
        const { commandId, events, position: at, result } = answer;
        return { kind: 'done', commandId, events, position: at, result };
      }
      case 'unchanged':
        return { kind: 'done', commandId: '', events: [], position: answer.position, result: answer.result };
      case 'repeated': {
        const { commandId, resourceId } = answer;
        return { kind: 'repeated', commandId, resourceId, position: await endOfCommand(answer.revision) };
      }
      case 'refused':
        throw answer.error;
      default:
        return unreachable(answer);
    }
  }

  /** @throws ServiceError `unavailable` */
  function queue(call: Call<State, Command>): Promise<Answer> {
    const readOnly = options.readOnly();
    if (stop.signal.aborted || readOnly !== undefined) {
      throw new ServiceError('unavailable', readOnly ?? 'the service is shutting down');
    }
    if (callers.count >= tuning.gatewayQueue) {
      throw new ServiceError('unavailable', 'too many commands are waiting; nothing was written');
    }
    const answer = callers.add(call);
    // Behind this turn of the event loop, so that the callers of one turn share an append and its flush.
    running ??= yieldToEventLoop().then(run);
    return answer;
  }

  return {
    async execute<R>(
      command: Command,
      context: CommandContext,
      select: (state: State) => R,
    ): Promise<CommandOutcome<R>> {
      // `select` made the result.
      return (await outcomeOf(await queue({ command, context, select }))) as CommandOutcome<R>;
    },
    async read<R>(select: (state: State) => R): Promise<R> {
      const outcome = await outcomeOf(await queue({ command: undefined, context: undefined, select }));
      if (outcome.kind !== 'done') throw new Error('a read repeats no command');
      return outcome.result as R;
    },
    async close() {
      stop.abort();
      await running;
    },
  };
}

/**
 * Runs the commands of one stream, one after the other: those that wait together form a group, which is decided and
 * appended at once (`run-group.ts`). Knows nothing of what commands mean. Implements
 * `docs/contract/domain.md#commands-and-events`.
 */
import { yieldToEventLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError, unreachable } from '../kernel/errors.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import type { LogChain } from '../log-chain/log-chain.js';
import type { EventStore } from '../storage/event-store.js';
import { firstFrom } from '../storage/event-store.js';
import type { Aggregate, DecidingState } from './aggregate.js';
import { appendGroup } from './append-group.js';
import { createDecidingFold } from './deciding-fold.js';
import type { CommandContext, CommandOutcome, Gateway, ProjectionWait } from './port.js';
import type { GroupParts } from './run-group.js';
import { runGroup } from './run-group.js';
import { tuning } from './tuning.js';
import type { Answer, Call } from './waiting-callers.js';
import { createWaitingCallers } from './waiting-callers.js';

export interface GatewayOptions {
  readonly eventStore: EventStore;
  readonly projections: ProjectionWait;
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

/**
 * Starts a gateway; reads the end of the stream first.
 * @throws ServiceError `unavailable`; UnknownEventError, BrokenChainError, BrokenLogError
 */
export async function createGateway<State extends DecidingState, Command>(
  aggregate: Aggregate<State, Command>,
  options: GatewayOptions,
): Promise<Gateway<State, Command>> {
  const { eventStore, projections, clock, logger } = options;
  const { stream } = aggregate;
  const stop = new AbortController();
  const fold = createDecidingFold(aggregate, options);
  const callers = createWaitingCallers<State, Command>();
  /** Callers whose commands are in the log and not shown yet. */
  let showing = 0;
  const group: GroupParts<State, Command> = {
    fold,
    callers,
    showing: () => showing,
    append: (expected, events) =>
      appendGroup({ eventStore, clock, logger, signal: stop.signal }, stream, expected, events),
  };
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (callers.count > 0) await runGroup(group);
    // No await since the queue was found empty: the next caller starts a new run.
    running = undefined;
  }

  interface Shown {
    readonly lagging: boolean;
    readonly waitedMs: number;
  }
  let newestWait: { readonly revision: number; readonly shown: Promise<Shown> } | undefined;

  /** Waits until the read models hold the revision, within bounds. */
  async function waitForProjections(revision: number): Promise<Shown> {
    const began = clock.monotonic();
    const applied = await projections.applied(stream, revision, limits.rest.projectionWaitMs);
    return { lagging: !applied, waitedMs: clock.monotonic() - began };
  }

  /** The commands of a group stand in the log together and are shown together: they share one wait. */
  function waitForGroup(lastRevision: number): Promise<Shown> {
    if (newestWait?.revision !== lastRevision) {
      newestWait = { revision: lastRevision, shown: waitForProjections(lastRevision) };
    }
    return newestWait.shown;
  }

  /** Where a command that was accepted before ends, read from the log. @param revision of its first event */
  async function endOfCommand(revision: number): Promise<{ readonly revision: number; readonly position: number }> {
    const first = await firstFrom(eventStore, stream, revision);
    if (first === undefined) return { revision, position: fold.newestPosition() };
    const { index, count } = first.metadata.command;
    const last = index + 1 === count ? first : await firstFrom(eventStore, stream, revision + count - 1 - index);
    return last ?? first;
  }

  /** @throws ServiceError: the refusal */
  async function outcomeOf(answer: Answer): Promise<CommandOutcome<unknown>> {
    switch (answer.kind) {
      case 'written': {
        const { commandId, events, groupRevision, position, result } = answer;
        showing += 1;
        const { lagging, waitedMs } = await waitForGroup(groupRevision).finally(() => (showing -= 1));
        return { kind: 'done', commandId, events, position, result, lagging, waitedMs };
      }
      case 'unchanged': {
        const { position, result } = answer;
        return { kind: 'done', commandId: '', events: [], position, result, lagging: false, waitedMs: 0 };
      }
      case 'repeated': {
        const { commandId, resourceId } = answer;
        const { revision, position } = await endOfCommand(answer.revision);
        const { lagging } = await waitForProjections(revision);
        return { kind: 'repeated', commandId, resourceId, position, lagging };
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

  await fold.catchUp();
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

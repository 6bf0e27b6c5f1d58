/**
 * The queue of a gateway's callers, in order of arrival. Each is answered once and in bounded time, even if the outcome of an
 * append stays unknown for longer. Neither decides nor appends.
 */
import { ServiceError } from '../kernel/errors.js';
import type { CommandContext, CommandOutcome } from './port.js';
import { tuning } from './tuning.js';

export interface Call<State, Command> {
  /** undefined to only read the fold. */
  readonly command: Command | undefined;
  readonly context: CommandContext | undefined;
  /** Reads the result from the state right after the command's own events. */
  readonly select: (state: State) => unknown;
}

/** The outcome of a command. */
export type CallAnswer =
  | Extract<CommandOutcome<unknown>, { readonly kind: 'done' }>
  /** `revision`: the first event of the command that used the key. */
  | { readonly kind: 'repeated'; readonly commandId: string; readonly resourceId: string; readonly revision: number }
  | { readonly kind: 'refused'; readonly error: ServiceError };

export interface WaitingCaller<State, Command> extends Call<State, Command> {
  readonly answer: (answer: CallAnswer) => void;
}

export interface WaitingCallers<State, Command> {
  readonly count: number;
  /** Adds a call at the end. @returns its answer, within `tuning.commandAnswerMs` */
  add(call: Call<State, Command>): Promise<CallAnswer>;
  /** In order of arrival. */
  all(): readonly WaitingCaller<State, Command>[];
  /** The commands of the first `count` callers may be written from now on. */
  beginGroup(count: number): void;
  /** Removes the callers of the group, whose commands are settled. */
  endGroup(): void;
  /** Removes and refuses all callers, in a group or not. */
  refuseAll(error: ServiceError): void;
}

export function createWaitingCallers<State, Command>(): WaitingCallers<State, Command> {
  const queue: WaitingCaller<State, Command>[] = [];
  /** How many callers at the head of the queue are in the group. */
  let inGroup = 0;

  /** A command in the group continues without its caller; one that still waits is removed. */
  function refuseLate(caller: WaitingCaller<State, Command>): void {
    const index = queue.indexOf(caller);
    const mayBeWritten = index < inGroup;
    if (!mayBeWritten) queue.splice(index, 1);
    const message = mayBeWritten
      ? 'the event store did not say in time whether the change was written; it may have been'
      : 'the event store does not answer; nothing was written';
    caller.answer({ kind: 'refused', error: new ServiceError('unavailable', message) });
  }

  return {
    get count() {
      return queue.length;
    },
    add: ({ command, context, select }) =>
      new Promise((resolve) => {
        const caller: WaitingCaller<State, Command> = {
          command,
          context,
          select,
          answer(answer) {
            clearTimeout(timer);
            resolve(answer);
          },
        };
        const timer = setTimeout(() => refuseLate(caller), tuning.commandAnswerMs);
        queue.push(caller);
      }),
    all: () => queue,
    beginGroup(count) {
      inGroup = count;
    },
    endGroup() {
      queue.splice(0, inGroup);
      inGroup = 0;
    },
    refuseAll(error) {
      inGroup = 0;
      for (const caller of queue.splice(0)) caller.answer({ kind: 'refused', error });
    },
  };
}

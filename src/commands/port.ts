/**
 * What the transports see of the write side. Types only: the gateway and the handlers are in the files beside.
 * Implements `docs/contract/domain.md#commands-and-events` and `docs/contract/rest.md#consistency`.
 */
import type { SigninEvent } from '../domain/accounts/signin.js';
import type { AgentEvent } from '../domain/agents/facts.js';
import type { Actor, IdempotencyMark, RecordedEvent } from '../kernel/event.js';

/** Who asks, why, and under which idempotency key. */
export interface CommandContext {
  readonly actor: Actor;
  readonly requestId: string;
  readonly idempotency?: IdempotencyMark | undefined;
}

/** A command that is durable. Its refusal is thrown as a ServiceError. */
export type CommandOutcome<R> =
  | {
      readonly kind: 'done';
      readonly commandId: string;
      /** Empty when the command changed nothing. */
      readonly events: readonly RecordedEvent[];
      /** Log position of the last event, or of the newest known one when nothing was written. */
      readonly position: number;
      /** What `select` read. */
      readonly result: R;
      /** The read models did not follow within `limits.rest.projectionWaitMs`. */
      readonly lagging: boolean;
      /** How long the durable command waited for them. */
      readonly waitedMs: number;
    }
  /** The same key, caller, path and body were accepted before: nothing was written now. */
  | {
      readonly kind: 'repeated';
      readonly commandId: string;
      readonly resourceId: string;
      readonly position: number;
      readonly lagging: boolean;
    };

/** Runs commands of one stream, one after the other, on a fold of its own. */
export interface Gateway<State, Command> {
  /**
   * Decides, appends, waits for this instance's projections. `select` reads the answer from the state right after the
   * command's own events. A command without events is an accepted no-change.
   * @throws ServiceError: the refusal; `unavailable` when the log can't be written or the outcome stays unknown
   */
  execute<R>(command: Command, context: CommandContext, select: (state: State) => R): Promise<CommandOutcome<R>>;
  close(): Promise<void>;
}

/** Records facts in batches; answers once they are durable. */
export interface FactRecorder {
  agent(nodeId: string, event: AgentEvent, requestId: string): Promise<void>;
  signin(event: SigninEvent, actor: Actor, requestId: string): void;
  close(): Promise<void>;
}

/** How a command waits until a GET would show it. */
export interface ProjectionWait {
  /** True once this instance's read models hold the event, false after `timeoutMs`. */
  applied(stream: string, revision: number, timeoutMs: number): Promise<boolean>;
}

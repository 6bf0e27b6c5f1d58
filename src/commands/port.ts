/**
 * Ports of the write side: the gateway, the recorder of facts, and the wait for read models. Types only.
 * Implements `docs/contract/domain.md#commands-and-events` and `docs/contract/rest.md#consistency`.
 */
import type { SigninEvent } from '../domain/accounts/signin.js';
import type { AgentEvent, FactOutcome } from '../domain/agents/facts.js';
import type { ConfirmationAsk } from '../domain/confirmation/confirmation.js';
import type { RolloutPlan } from '../domain/rollout-start/start.js';
import type {
  Actor,
  EventMetadata,
  IdempotencyMark,
  RecordedCommand,
  RecordedEvent,
  TokenMark,
} from '../kernel/event.js';

/** How a caller wants a command to be rolled out. */
export interface RolloutAsked {
  /** A policy by name, or `none`; undefined for what the settings say. */
  readonly policy: string | undefined;
  /** Writes nothing, and throws the plan as `OnlyPlanned`. */
  readonly dryRun: boolean;
  /** How it is to be confirmed; undefined for what the policy says. */
  readonly confirm?: ConfirmationAsk | undefined;
  /** Receives the plan of the command; of several calls, the last counts. */
  planned(plan: RolloutPlan | undefined): void;
}

/** The author of a command, its request, and its idempotency key. */
export interface CommandContext {
  readonly actor: Actor;
  readonly requestId: string;
  /** The API token of the actor. */
  readonly token?: TokenMark | undefined;
  readonly idempotency?: IdempotencyMark | undefined;
  /** The audit entry (command id) that the command reverts. */
  readonly revertOf?: string | undefined;
  /** For a command that may touch several nodes (`rollouts.ts`). */
  readonly rollout?: RolloutAsked | undefined;
  /** Whether the author's token has ended while the command waited. */
  readonly ended?: (() => boolean) | undefined;
}

/** The outcome of an accepted command. A refusal is thrown as a ServiceError. */
export type CommandOutcome<R> =
  | {
      readonly kind: 'done';
      readonly commandId: string;
      /** Empty when the command changed nothing. */
      readonly events: readonly RecordedEvent[];
      /** Log position of the last event; of the newest known event when nothing was written. */
      readonly position: number;
      /** The result of `select`. */
      readonly result: R;
    }
  /** The same key, caller, path and body were accepted before, so nothing was written. */
  | {
      readonly kind: 'repeated';
      readonly commandId: string;
      readonly resourceId: string;
      /** What was accepted then; undefined if the log has lost it. */
      readonly command: RecordedCommand | undefined;
      readonly position: number;
    };

/** The committed state of one stream: the log as far as this instance has read it. */
export interface Committed<State> {
  /** Do not store it: reading the log again may replace it. */
  state(): State;
  /** Folds commands that were just appended; skips those that the state holds already. */
  apply(commands: readonly RecordedCommand[]): void | Promise<void>;
  /** Reads the log to its end. @throws ServiceError `unavailable`, BrokenChainError, UnknownEventError */
  catchUp(): Promise<void>;
}

/** Runs commands of one stream, one after the other, on a fold of its own. */
export interface Gateway<State, Command> {
  /**
   * Decides, appends and folds a command; a GET then shows the change. No events mean an accepted no-change.
   * @param select reads the result from the state right after the command's own events
   * @throws ServiceError the refusal, or `unavailable` when the log cannot be written or the outcome stays unknown
   */
  execute<R>(command: Command, context: CommandContext, select: (state: State) => R): Promise<CommandOutcome<R>>;
  /** Reads the fold after all earlier commands, at the end of the log. @throws ServiceError `unavailable` */
  read<R>(select: (state: State) => R): Promise<R>;
  /** Runs `work` while this instance's commands wait, one at a time. `work` must not give commands. */
  alone(work: () => Promise<void>): Promise<void>;
  /**
   * The commands of the log from a command's first revision on, in their current shape. @throws ServiceError `unavailable`
   */
  commandsFrom(revision: number): AsyncIterable<RecordedCommand>;
  close(): Promise<void>;
}

/** Records facts in batches. */
export interface FactRecorder {
  /**
   * Resolves when the fact is recorded or dropped. The node's budget may hold it back for minutes, even beyond its session.
   * @param requestId id of the agent's session
   * @throws ServiceError `unavailable` when too many facts wait, or the service ends before the log takes it
   */
  agent(nodeId: string, event: AgentEvent, requestId: string): Promise<FactOutcome>;
  /** Drops the waiting facts of a node that are obsolete. */
  drop(nodeId: string, obsolete: (metadata: EventMetadata) => boolean): void;
  /** Records in the background. */
  signin(event: SigninEvent, actor: Actor, requestId: string): void;
  stats(): FactStats;
  close(): Promise<void>;
}

/** Facts by outcome since the start, and facts held back now. */
export interface FactStats {
  readonly outcomes: ReadonlyMap<FactOutcome, number>;
  readonly held: number;
}

/** How reverts wait for the audit. */
export interface ProjectionWait {
  /** True once the stored read models have reached the log position, false after `timeoutMs`. */
  reached(position: number, timeoutMs: number): Promise<boolean>;
}

export type Answer<R> = Promise<CommandOutcome<R>>;
/** The outcome of a command that takes no idempotency key. */
export type Done<R> = Extract<CommandOutcome<R>, { readonly kind: 'done' }>;

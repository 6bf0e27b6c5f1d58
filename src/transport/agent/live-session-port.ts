/** An attached session as the transport sees it, and what it needs. Types only. */
import type { JoinAnswer, JoinRequested } from '../../commands/join-tokens.js';
import type { AgentCommandName, Delivery } from '../../delivery/port.js';
import { type AgentHello, type SessionCloseReason } from '../../gen/svc/control/v1/session.js';
import type { Clock } from '../../kernel/clock.js';
import type { Logger } from '../../kernel/logger.js';
import type { Diagnostics, PresenceFacts, Telemetry } from '../../reports/port.js';
import type { PendingSession } from './admission/pending-table.js';
import type { AgentConnection } from '../listener/connection.js';
import type { StreamHandlers } from './agent-stream.js';
import { type CloseReason } from './close-reasons.js';
import { type Counters } from './counters.js';
import { type Frame } from './frames.js';
import type { ReadBudget, UnfinishedBytes } from './read-budget.js';

export interface LiveSessionDeps {
  readonly delivery: Pick<Delivery, 'openNodeSession' | 'settings'>;
  readonly telemetry: Pick<Telemetry, 'alive' | 'metrics'>;
  /** Whether commands are queued for a node, including claimed and expired ones. */
  hasCommands(nodeId: string): boolean;
  /** At most 16, oldest first; each is claimed once. */
  claimCommands(nodeId: string): Promise<readonly AgentCommandName[]>;
  readonly diagnostics: Pick<Diagnostics, 'take'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  readonly instanceId: string;
  readonly rekeySeconds: number;
  readonly counters: Counters;
  readonly unfinished: UnfinishedBytes;
  /** The read budget of a node. */
  readBudget(nodeId: string): ReadBudget;
  /** The session has exceeded its read budget. */
  onThrottled(session: LiveSession): void;
  /** The session's first valid frame has arrived. */
  onProven(session: LiveSession, connection: AgentConnection): void;
  /** The hello has arrived: the session becomes its node's live one. Rejects when the stores are out of reach. */
  onHello(session: LiveSession, hello: AgentHello): Promise<void>;
  /** Makes the node of a machine that joins. Rejects when it may try again. */
  join(request: JoinRequested): Promise<JoinAnswer>;
  /** Nothing more will come from the session; its stream may still be closing. */
  onEnded(session: LiveSession, reason: CloseReason, agentReason: SessionCloseReason | undefined): void;
}

export interface LiveSession extends StreamHandlers {
  readonly nodeId: string;
  /** Lower-case hex. */
  readonly id: string;
  /** The PSK that it was opened under. */
  readonly psk: PendingSession['psk'];
  /** The agent's address. */
  readonly address: string;
  /** When OpenSession was answered, monotonic milliseconds. */
  readonly openedAt: number;
  presence(): PresenceFacts;
  readonly offlineAfterMs: number;
  frame(frame: Frame): void;
  supersede(): void;
  revoke(): void;
  drain(): void;
  /** Checks the time limits. */
  tick(): void;
  /** For how many milliseconds the peer has not taken the current fragment. */
  slowFor(now: number): number;
  /** Its reads are paused because it has exceeded its budget. */
  readonly throttled: boolean;
  /** Nothing more comes from it. */
  readonly over: boolean;
  /** Resolves when the stream is over. */
  readonly closed: Promise<void>;
}

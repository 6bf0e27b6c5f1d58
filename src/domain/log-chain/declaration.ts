/**
 * The events of the log chain itself: it begins, and it goes over to the key of another master key. They stand in the
 * streams that they are about, `svc-fleet` and `svc-accounts`, and change nothing in these streams' meaning. Implements
 * `docs/log-chain.md`.
 */
import type { RecordedCommand } from '../../kernel/event.js';
import { eventAudit, fieldChanges } from '../resource/audit-change.js';
import type { EventAudit } from '../resource/audit-change.js';
import type { EventDeclaration, EventSchemas } from '../resource/declaration.js';

export type LogChainEvent =
  | { readonly type: 'LogChainStarted'; readonly data: { readonly key_id: string } }
  /** The last command under the old key. */
  | {
      readonly type: 'LogChainKeyChanged';
      readonly data: { readonly key_id: { readonly from: string; readonly to: string } };
    };

/**
 * The key of earlier links, sealed under the one that replaced it, so that the present master key verifies the whole log.
 * It stands in a stream of its own, `svc-log-chain`, where a start finds it without reading a whole stream.
 */
export type LogChainKeySealed = {
  readonly type: 'LogChainKeySealed';
  readonly data: {
    readonly key_id: string;
    readonly under: string;
    /** base64url. */
    readonly nonce: string;
    readonly ct: string;
  };
};

const audit = (key_id: { readonly from: string | null; readonly to: string }): EventAudit =>
  eventAudit('update', fieldChanges({ log_chain_key: key_id }), 'the log chain follows the master key');

type Declarations = {
  readonly [T in LogChainEvent['type']]: EventDeclaration<Extract<LogChainEvent, { readonly type: T }>>;
};

export const logChainEvents: Declarations = {
  LogChainStarted: { schemaVersion: 1, audit: ({ data }) => audit({ from: null, to: data.key_id }) },
  LogChainKeyChanged: { schemaVersion: 1, audit: ({ data }) => audit(data.key_id) },
};

export const logChainKeyEvents: EventSchemas<LogChainKeySealed> = { LogChainKeySealed: { schemaVersion: 1 } };

/** How the audit names the log. */
export const logSubject = { type: 'service', id: 'log' } as const;

/** The event as one of the log chain, or undefined for any other. */
export function asLogChainEvent(event: { readonly type: string }): LogChainEvent | undefined {
  return Object.hasOwn(logChainEvents, event.type) ? (event as unknown as LogChainEvent) : undefined;
}

/** True for a command that is about the chain of its stream, and nothing that the stream holds. */
export function isOfLogChain(command: RecordedCommand): boolean {
  return asLogChainEvent(command.events[0]) !== undefined;
}

/** How one event of the log chain is shown in the audit. */
export function auditOfLogChainEvent(event: LogChainEvent): EventAudit {
  return event.type === 'LogChainStarted'
    ? logChainEvents.LogChainStarted.audit(event)
    : logChainEvents.LogChainKeyChanged.audit(event);
}

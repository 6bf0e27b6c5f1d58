/**
 * The facts of `svc-status`: one for each change that no command made. They are in the event feed and in no audit.
 * Implements `docs/contract/notices.md#status-changes-are-facts`.
 */
import { eventOf, streams, type RecordedEvent } from '../../kernel/event.js';
import type { EventSchemas } from '../resource/declaration.js';
import type { StatusKey } from './status.js';

/** Lasts from the fact that something became bad to the fact that it was well again. */
export type Incident = {
  /** The id of its first fact. */
  readonly id: string;
  /** RFC 3339. */
  readonly began_at: string;
  /** The worst so far. */
  readonly status: string;
};

export type StatusFact = {
  readonly resource: StatusKey & { readonly name: string };
  /** The status that was told before. */
  readonly was: string;
  readonly status: string;
  /** When the status began, RFC 3339. */
  readonly since: string;
  /** A sentence, or null. */
  readonly reason: string | null;
  /** The incident that the fact begins, belongs to or ends. */
  readonly incident: Incident | null;
  /** Nobody is told: the fact was written again before it expired, or was known before anything was told. */
  readonly again?: true;
};

export interface StatusChanged {
  readonly type: 'StatusChanged';
  readonly data: StatusFact;
}

export const statusEvents: EventSchemas<StatusChanged> = { StatusChanged: { schemaVersion: 1 } };

/** A recorded event as a fact of `svc-status`. */
export const statusChanged = (event: RecordedEvent): StatusChanged => eventOf(streams.status, event);

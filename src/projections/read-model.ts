/**
 * The shape of a read model: a pure fold per entity, from its document and one more event to its next document. It uses no
 * clock, no randomness and no other read model, so the same log always gives the same documents.
 * Implements `docs/architecture.md#read-models`.
 */
import type { RecordedCommand, RecordedEvent } from '../kernel/event.js';
import type { Fields, GroupRange, IndexSpec } from '../storage/read-store.js';

export interface ReadModel<F extends Fields = Fields> {
  /** The name of its collection, `[a-z_]+`. Its version is the group's (`read-models.ts`). */
  readonly name: string;
  readonly index?: IndexSpec | undefined;
  /**
   * The documents whose events have expired by now, in milliseconds: they are removed, whether or not the log still has
   * the events. Absent where documents are kept for ever.
   */
  expired?(now: number): GroupRange;
  /** Ids of the documents that the event concerns. Events are in their current shape. */
  keys(event: RecordedEvent): readonly string[];
  /**
   * The document of `id` after one more event of `command`: `fields` itself when nothing changes. Undefined only while
   * there is none, because documents are never deleted.
   */
  evolve(fields: F | undefined, event: RecordedEvent, command: RecordedCommand, id: string): F | undefined;
}

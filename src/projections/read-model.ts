/**
 * The shape of a read model: a pure fold per entity, from its document and one more event to its next document. It uses no
 * clock, no randomness and no other read model, so the same log always gives the same documents.
 * Implements `docs/architecture.md#read-models`.
 */
import type { RecordedCommand, RecordedEvent } from '../kernel/event.js';
import type { Json } from '../kernel/json.js';
import type { Fields, Filter, IndexSpec } from '../storage/read-store.js';

export interface ReadModel<F extends Fields = Fields> {
  /** The name of its collection, `[a-z_]+`. Its version is the group's (`read-models.ts`). */
  readonly name: string;
  readonly indexes: readonly IndexSpec[];
  /**
   * Which documents are no longer shown, by the time now in milliseconds, because their events expire. They are removed by
   * their own time; absent where documents are kept for ever.
   */
  expired?(now: number): readonly Filter[];
  /** Ids of the documents that the event concerns. Events are in their current shape. */
  keys(event: RecordedEvent): readonly string[];
  /**
   * The document of `id` after one more event of `command`; undefined when it is deleted or still does not exist.
   * Returns `fields` itself when nothing changes.
   */
  evolve(fields: F | undefined, event: RecordedEvent, command: RecordedCommand, id: string): F | undefined;
}

/** A domain state as a field of a document. States consist of JSON, which interfaces cannot express. */
export function asJson(state: object): Json {
  return state as unknown as Json;
}

/** The domain state in a field that `asJson` wrote. */
export function fromJson<S extends object>(field: Json): S {
  return field as unknown as S;
}

/**
 * The shape of a read model: a pure fold per entity, from an entity's document and one more event to its next document.
 * No clock, no randomness, no environment, no other read model: the same log gives the same documents, however often
 * and in however many parts it is read. Implements `docs/architecture.md` (projections).
 */
import type { RecordedCommand, RecordedEvent } from '../kernel/event.js';
import type { Json } from '../kernel/json.js';
import type { Fields, IndexSpec } from '../storage/read-store.js';

export interface ReadModel<F extends Fields = Fields> {
  /** Of the collection, `[a-z_]+`. Its version is the group's (`read-models.ts`). */
  readonly name: string;
  readonly indexes: readonly IndexSpec[];
  /** Ids of the documents that the event concerns; none when it is of no interest. Events are in today's shapes. */
  keys(event: RecordedEvent): readonly string[];
  /**
   * The document of `id` after one more event of `command`; undefined when it is gone, or is not there and stays so.
   * Returns `fields` itself when nothing changes.
   */
  evolve(fields: F | undefined, event: RecordedEvent, command: RecordedCommand, id: string): F | undefined;
}

/** A domain state as a document's field: states are made of JSON, which their interfaces can't say. */
export function asJson(state: object): Json {
  return state as unknown as Json;
}

/** A domain state out of a document's field that `asJson` put there. */
export function fromJson<S extends object>(field: Json): S {
  return field as unknown as S;
}

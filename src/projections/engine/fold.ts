/**
 * Folds a batch of whole commands into writes, one entity at a time, each guarded by the log position that it reflects. Pure;
 * `apply.ts` stores them. Implements `docs/architecture.md#read-models`.
 */
import { errorText } from '../../kernel/errors.js';
import { lastEvent, type RecordedCommand, type RecordedEvent } from '../../kernel/event.js';
import type { Fields, StoredDocument } from '../../storage/read-store.js';
import type { ReadModel } from '../read-model.js';
import { tuning } from '../tuning.js';

/** Projecting cannot continue and a retry would not help. The runner stops; the message says why. */
export class ProjectionsStopped extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ProjectionsStopped';
  }
}

/** The part of one command that concerns one entity. */
export interface Step {
  readonly command: RecordedCommand;
  readonly events: RecordedEvent[];
}

/** Entity id → its steps, in log order. */
export type Work = ReadonlyMap<string, readonly Step[]>;

/**
 * The entities of a read model that the commands concern, with their events.
 * @throws ProjectionsStopped when the read model cannot name the entities of an event: then none can be parked
 */
export function workOf(model: ReadModel, commands: readonly RecordedCommand[]): Work {
  const work = new Map<string, Step[]>();
  for (const command of commands) {
    for (const event of command.events) {
      const ids = keysOf(model, event);
      // Nearly every event concerns at most one document of a model.
      if (ids.length === 0) continue;
      for (const id of ids.length === 1 ? ids : new Set(ids)) {
        const steps = work.get(id);
        const last = steps?.at(-1);
        if (steps === undefined) work.set(id, [{ command, events: [event] }]);
        else if (last?.command === command) last.events.push(event);
        else steps.push({ command, events: [event] });
      }
    }
  }
  return work;
}

function keysOf(model: ReadModel, event: RecordedEvent): readonly string[] {
  try {
    return model.keys(event);
  } catch (error) {
    throw new ProjectionsStopped(
      `${model.name} cannot name the entities that an event concerns: ${shortError(error)}`,
      error,
    );
  }
}

/** An entity that an event could not be applied to. */
export interface Poisoned {
  readonly position: number;
  readonly error: string;
}

export interface Folded {
  /** Undefined when nothing changed. */
  readonly write: StoredDocument | undefined;
  readonly poisoned: Poisoned | undefined;
}

/** An error as it is stored and shown, cut to a bounded length. */
export function shortError(error: unknown): string {
  return errorText(error).slice(0, tuning.errorChars);
}

/**
 * Folds the steps of an entity, except those that its document already reflects (repeats, or a faster instance). If a step
 * fails, the entity stays as it was before that command.
 */
export function foldEntity(
  model: ReadModel,
  id: string,
  document: StoredDocument | undefined,
  steps: readonly Step[],
): Folded {
  const reflected = document?.position ?? -1;
  let fields: Fields | undefined = document?.fields;
  let changedAt = -1;
  const written = (): StoredDocument | undefined =>
    changedAt < 0 || fields === undefined ? undefined : { id, position: changedAt, fields };
  for (const { command, events } of steps) {
    const { position } = lastEvent(command);
    if (position <= reflected) continue;
    let next = fields;
    try {
      for (const event of events) next = model.evolve(next, event, command, id);
    } catch (error) {
      return { write: written(), poisoned: { position, error: shortError(error) } };
    }
    if (next === fields) continue;
    changedAt = position;
    fields = next;
  }
  return { write: written(), poisoned: undefined };
}

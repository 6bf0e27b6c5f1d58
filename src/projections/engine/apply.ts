/**
 * Applies whole commands to every read model: loads their documents, folds in memory, and makes one guarded write for each.
 * Idempotent; `runner.ts` writes the checkpoint afterwards. Implements `docs/architecture.md#read-models`.
 */
import { yieldToEventLoop } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import type { RecordedCommand } from '../../kernel/event.js';
import type { Logger } from '../../kernel/logger.js';
import type { StoredDocument } from '../../storage/read-store.js';
import { foldEntity, ProjectionsStopped, shortError, workOf, type Work } from './fold.js';
import type { Parking } from './parked.js';
import type { ParkedEntity } from '../port.js';
import type { ReadModel } from '../read-model.js';
import type { OpenCollections } from '../read-models.js';

export interface ApplyTarget {
  readonly models: readonly ReadModel[];
  readonly collections: OpenCollections;
  readonly parking: Parking;
  readonly logger: Logger;
  /** True while a version is filled for the first time: an entity that cannot be folded then stops the run. */
  rebuilding(): boolean;
}

/** Documents folded before the event loop gets a turn. @internal exported for tests */
export const documentsPerTurn = 256;

/**
 * Returns once queries see every document. Commands are in today's shapes.
 * @throws ProjectionsStopped when a retry cannot help; the read store's error when it can
 */
export async function applyCommands(target: ApplyTarget, commands: readonly RecordedCommand[]): Promise<void> {
  const poisoned: ParkedEntity[] = [];
  const writes: Promise<void>[] = [];
  let sinceYield = 0;
  try {
    for (const model of target.models) {
      const work = workOf(model, commands);
      if (work.size === 0) continue;
      const prepared = await prepare(target, model, work, poisoned);
      const write = writeAll(target, model.name, prepared, poisoned);
      // Awaited below; until then, a failure must not count as unhandled.
      write.catch(() => undefined);
      writes.push(write);
      // Not after each model: writes in one turn share a flush, and the sender of a command waits for all of them.
      sinceYield += work.size;
      if (sinceYield < documentsPerTurn) continue;
      sinceYield = 0;
      await yieldToEventLoop();
    }
  } finally {
    // No write may keep running after a failure: the next try would race with it.
    await Promise.allSettled(writes);
  }
  await Promise.all(writes);
  await settlePoisoned(target, poisoned);
}

/**
 * Parks the entities that an event cannot be applied to, once all others are durable.
 * @throws ProjectionsStopped during a rebuild, or when there are too many
 */
async function settlePoisoned(target: ApplyTarget, poisoned: readonly ParkedEntity[]): Promise<void> {
  if (poisoned.length === 0) return;
  const [first] = poisoned;
  if (target.rebuilding() && first !== undefined) {
    const { projection, id, position, error } = first;
    throw new ProjectionsStopped(
      `the rebuild of ${projection} stopped at position ${position}, entity ${id}: ${error}`,
    );
  }
  for (const entity of poisoned) {
    target.logger.error({ ...entity }, 'an event cannot be applied; the entity is parked');
  }
  await target.parking.add(poisoned);
}

async function prepare(
  { collections, parking }: ApplyTarget,
  model: ReadModel,
  work: Work,
  poisoned: ParkedEntity[],
): Promise<readonly StoredDocument[]> {
  const ids = [...work.keys()].filter((id) => !parking.has(model.name, id));
  const prepared: StoredDocument[] = [];
  for (let start = 0; start < ids.length; start += documentsPerTurn) {
    if (start > 0) await yieldToEventLoop();
    const some = ids.slice(start, start + documentsPerTurn);
    const stored = (await collections.get(model.name)?.getMany(some)) ?? [];
    const documents = new Map(stored.map((document) => [document.id, document]));
    for (const id of some) {
      const folded = foldEntity(model, id, documents.get(id), work.get(id) ?? []);
      if (folded.write !== undefined) prepared.push(folded.write);
      if (folded.poisoned !== undefined) poisoned.push({ projection: model.name, id, ...folded.poisoned });
    }
  }
  return prepared;
}

const isOutage = (error: unknown): boolean => error instanceof ServiceError && error.code === 'unavailable';

/** Writes documents; `poisoned` gets those that the store refuses for good. @internal exported for tests */
export async function writeAll(
  { collections }: ApplyTarget,
  model: string,
  writes: readonly StoredDocument[],
  poisoned: ParkedEntity[],
): Promise<void> {
  const collection = collections.get(model);
  if (collection === undefined || writes.length === 0) return;
  try {
    await collection.write(writes);
    return;
  } catch (error) {
    if (isOutage(error)) throw error;
  }
  for (const write of writes) {
    try {
      await collection.write([write]);
    } catch (error) {
      if (isOutage(error)) throw error;
      poisoned.push({ projection: model, id: write.id, position: write.position, error: shortError(error) });
    }
  }
}

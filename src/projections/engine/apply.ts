/**
 * Applies whole commands to every read model: load what they concern, fold in memory, one guarded write per document.
 * Repeating it changes nothing. Not the checkpoint, which comes after (`runner.ts`).
 */
import { yieldToEventLoop } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import type { RecordedCommand } from '../../kernel/event.js';
import type { Logger } from '../../kernel/logger.js';
import type { GuardedWrite } from '../../storage/read-store.js';
import { foldEntity, shortError, workOf } from './fold.js';
import type { Work } from './fold.js';
import type { Parking } from './parked.js';
import type { ParkedEntity } from '../port.js';
import type { ReadModel } from '../read-model.js';
import type { OpenCollections } from '../read-models.js';
import { ProjectionsStopped } from './stopped.js';

export interface ApplyTarget {
  readonly models: readonly ReadModel[];
  readonly collections: OpenCollections;
  readonly parking: Parking;
  readonly logger: Logger;
  /** While a version is filled for the first time, a poisoned entity stops it instead of being parked. */
  rebuilding(): boolean;
}

/** Documents folded before the event loop gets a turn. */
export const documentsPerTurn = 256;

/**
 * Returns once every document is durable. Commands are in today's shapes.
 * @throws ProjectionsStopped when a retry can't help; what the read store throws, when it can
 */
export async function applyCommands(target: ApplyTarget, commands: readonly RecordedCommand[]): Promise<void> {
  const poisoned: ParkedEntity[] = [];
  const writes: Promise<void>[] = [];
  let sinceYield = 0;
  try {
    for (const model of target.models) {
      const work = workFor(model, commands);
      if (work.size === 0) continue;
      const prepared = await prepare(target, model, work, poisoned);
      const write = writeAll(target, model.name, prepared, poisoned);
      // It is awaited below; until then its failure must not count as unhandled.
      write.catch(() => undefined);
      writes.push(write);
      // Not after each model: the writes of one turn share a flush, and whoever sent a command waits for all of them.
      sinceYield += work.size;
      if (sinceYield < documentsPerTurn) continue;
      sinceYield = 0;
      await yieldToEventLoop();
    }
  } finally {
    // No write is left running behind a failure: the next try would race with it.
    await Promise.allSettled(writes);
  }
  await Promise.all(writes);
  await settlePoisoned(target, poisoned);
}

/**
 * Parks entities that an event can't be applied to, after the others are durable.
 * @throws ProjectionsStopped while read models are made anew, or when there are too many
 */
export async function settlePoisoned(target: ApplyTarget, poisoned: readonly ParkedEntity[]): Promise<void> {
  if (poisoned.length === 0) return;
  const [first] = poisoned;
  if (target.rebuilding() && first !== undefined) {
    const { projection, id, position, error } = first;
    throw new ProjectionsStopped(
      `the rebuild of ${projection} stopped at position ${position}, entity ${id}: ${error}`,
    );
  }
  for (const entity of poisoned) {
    target.logger.error({ ...entity }, 'an event can not be applied; the entity is taken out of its read model');
  }
  await target.parking.add(poisoned);
}

/** Which entities an event concerns must be known: without that nothing can be parked. */
export function workFor(model: ReadModel, commands: readonly RecordedCommand[]): Work {
  try {
    return workOf(model, commands);
  } catch (error) {
    throw new ProjectionsStopped(`${model.name} can not tell what an event concerns: ${shortError(error)}`, error);
  }
}

async function prepare(
  { collections, parking }: ApplyTarget,
  model: ReadModel,
  work: Work,
  poisoned: ParkedEntity[],
): Promise<readonly GuardedWrite[]> {
  const ids = [...work.keys()].filter((id) => !parking.has(model.name, id));
  const found = (await collections.get(model.name)?.getMany(ids)) ?? [];
  const documents = new Map(found.map((document) => [document.id, document]));
  const prepared: GuardedWrite[] = [];
  for (const id of ids) {
    const before = documents.get(id);
    const folded = foldEntity(model, id, before, work.get(id) ?? []);
    if (folded.write !== undefined) prepared.push(before === undefined ? folded.write : { ...folded.write, before });
    if (folded.poisoned !== undefined) poisoned.push({ projection: model.name, id, ...folded.poisoned });
  }
  return prepared;
}

const isOutage = (error: unknown): boolean => error instanceof ServiceError && error.code === 'unavailable';

/** A document that the store will never take is poison like an event that can't be folded; the others must go in. */
export async function writeAll(
  { collections }: ApplyTarget,
  model: string,
  writes: readonly GuardedWrite[],
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

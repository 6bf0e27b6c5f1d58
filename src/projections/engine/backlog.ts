/**
 * What is folded and not written yet while there is much to catch up with: commands are folded on top of it, so that
 * reading and folding go on while what came before is being written, and a document that changes often is written once.
 * Not used once the log's end is reached: then every command is written at once (`apply.ts`).
 * Part of `docs/architecture.md`, projections.
 */
import { yieldToEventLoop } from '../../kernel/background.js';
import type { RecordedCommand } from '../../kernel/event.js';
import type { Fields, GuardedWrite, StoredDocument } from '../../storage/read-store.js';
import { documentsPerTurn, settlePoisoned, workFor, writeAll } from './apply.js';
import type { ApplyTarget } from './apply.js';
import { foldEntity } from './fold.js';
import type { Work } from './fold.js';
import type { ParkedEntity } from '../port.js';
import type { ReadModel } from '../read-model.js';
import { tuning } from '../tuning.js';

type Writes = Map<string, GuardedWrite>;

/** Commands that are written together. */
export interface Segment {
  readonly commands: readonly RecordedCommand[];
  readonly writes: ReadonlyMap<string, Writes>;
  readonly poisoned: readonly ParkedEntity[];
}

export interface Backlog {
  /**
   * Folds commands on top of all before. Nothing has changed when it fails.
   * @throws ProjectionsStopped when a retry can't help; what the read store throws, when it can
   */
  add(commands: readonly RecordedCommand[]): Promise<void>;
  /** Events that were folded and not taken yet. */
  events(): number;
  /** An entity of them can't be folded on: they must be written before more is added. */
  poisoned(): boolean;
  /** Everything folded since the last one. Only when that one is written. */
  take(): Segment;
  /** Returns once it is durable; may be tried again. @throws as `add` */
  write(segment: Segment): Promise<void>;
  /** Keeps no document in memory: others are about to write them. */
  forget(): void;
}

export function createBacklog(target: ApplyTarget): Backlog {
  const { models, collections, parking } = target;
  let commands: RecordedCommand[] = [];
  let events = 0;
  let folded = new Map<string, Writes>();
  let poisoned: ParkedEntity[] = [];
  /** What was taken and may not be written yet. */
  let taken = new Map<string, Writes>();
  /** Documents that changed more than once, as they are in the store: they are likely to change again. */
  const kept = new Map<string, Map<string, StoredDocument>>(models.map(({ name }) => [name, new Map()]));

  /** A document as it is after the write; undefined when the write removed it. */
  const after = ({ id, position }: GuardedWrite, fields: Fields | undefined): StoredDocument | undefined =>
    fields === undefined ? undefined : { id, position, fields };
  const written = (write: GuardedWrite): StoredDocument | undefined =>
    after(write, write.kind === 'put' ? write.fields : undefined);

  function keep(model: string, writes: Writes): void {
    const documents = kept.get(model);
    if (documents === undefined) return;
    for (const write of writes.values()) {
      documents.delete(write.id);
      const document = written(write);
      if (document !== undefined && write.before !== undefined) documents.set(write.id, document);
    }
    for (const id of documents.keys()) {
      if (documents.size <= tuning.keptDocuments) break;
      documents.delete(id);
    }
  }

  /** The documents of these ids as the store has them, or will have them once what was taken is written. */
  async function standing(model: string, ids: readonly string[]): Promise<ReadonlyMap<string, StoredDocument>> {
    const found = new Map<string, StoredDocument>();
    const unknown: string[] = [];
    for (const id of ids) {
      const write = taken.get(model)?.get(id);
      const document = write === undefined ? kept.get(model)?.get(id) : written(write);
      if (document !== undefined) found.set(id, document);
      else if (write === undefined) unknown.push(id);
    }
    const loaded = unknown.length === 0 ? [] : ((await collections.get(model)?.getMany(unknown)) ?? []);
    for (const document of loaded) found.set(document.id, document);
    return found;
  }

  async function fold(model: ReadModel, work: Work, stored: ReadonlyMap<string, StoredDocument>): Promise<void> {
    const writes: Writes = folded.get(model.name) ?? new Map<string, GuardedWrite>();
    folded.set(model.name, writes);
    let sinceYield = 0;
    for (const [id, steps] of work) {
      if (parking.has(model.name, id)) continue;
      const earlier = writes.get(id);
      const before = earlier === undefined ? stored.get(id) : earlier.before;
      const outcome = foldEntity(model, id, earlier === undefined ? before : written(earlier), steps);
      if (outcome.write !== undefined) {
        writes.set(id, before === undefined ? outcome.write : { ...outcome.write, before });
      }
      if (outcome.poisoned !== undefined) poisoned.push({ projection: model.name, id, ...outcome.poisoned });
      sinceYield += 1;
      if (sinceYield % documentsPerTurn === 0) await yieldToEventLoop();
    }
  }

  return {
    forget() {
      for (const documents of kept.values()) documents.clear();
    },
    events: () => events,
    poisoned: () => poisoned.length > 0,
    async add(more) {
      // All that can fail comes first.
      const prepared: { model: ReadModel; work: Work; stored: ReadonlyMap<string, StoredDocument> }[] = [];
      for (const model of models) {
        const work = workFor(model, more);
        if (work.size === 0) continue;
        const writes = folded.get(model.name);
        const ids = [...work.keys()].filter((id) => writes?.has(id) !== true && !parking.has(model.name, id));
        prepared.push({ model, work, stored: await standing(model.name, ids) });
      }
      for (const { model, work, stored } of prepared) await fold(model, work, stored);
      for (const command of more) {
        commands.push(command);
        events += command.events.length;
      }
    },
    take() {
      const segment: Segment = { commands, writes: folded, poisoned };
      taken = folded;
      [commands, events, folded, poisoned] = [[], 0, new Map(), []];
      return segment;
    },
    async write(segment) {
      // Each try begins anew: what the store would not take is found again.
      const lost = [...segment.poisoned];
      const writing = [...segment.writes].map(([model, writes]) => {
        // One of them may have been parked since it was folded.
        const all = [...writes.values()].filter(({ id }) => !parking.has(model, id));
        return writeAll(target, model, all, lost);
      });
      // No write is left running behind a failure: the next try would race with it.
      await Promise.allSettled(writing);
      await Promise.all(writing);
      await settlePoisoned(target, lost);
      for (const [model, writes] of segment.writes) keep(model, writes);
      for (const { projection, id } of lost) kept.get(projection)?.delete(id);
      if (taken === segment.writes) taken = new Map();
    },
  };
}

/**
 * Documents that are folded and not written yet, while there is much to catch up with. Further commands are folded on
 * top of them, so that reading and folding continue during a write, and a document that changes often is written once
 * per segment. Not used after the end of the log is reached: then every command is written at once (`apply.ts`).
 * Part of `docs/architecture.md#read-models`.
 */
import { yieldToEventLoop } from '../../kernel/background.js';
import type { RecordedCommand } from '../../kernel/event.js';
import type { GuardedWrite, StoredDocument } from '../../storage/read-store.js';
import { documentsPerTurn, settlePoisoned, workFor, writeAll } from './apply.js';
import type { ApplyTarget } from './apply.js';
import { foldEntity } from './fold.js';
import type { Work } from './fold.js';
import type { ParkedEntity } from '../port.js';
import type { ReadModel } from '../read-model.js';
import { tuning } from '../tuning.js';

type Writes = Map<string, GuardedWrite>;

/** The commands whose documents are written together. */
export interface Segment {
  readonly commands: readonly RecordedCommand[];
  readonly writes: ReadonlyMap<string, Writes>;
  readonly poisoned: readonly ParkedEntity[];
}

export interface Backlog {
  /**
   * Folds commands on top of everything before. When it throws, nothing has changed.
   * @throws ProjectionsStopped when a retry cannot help; what the read store throws, when a retry can
   */
  add(commands: readonly RecordedCommand[]): Promise<void>;
  /** How many events are folded and not taken yet. */
  events(): number;
  /** True when they are enough for one segment. */
  full(): boolean;
  /** True when one of their entities cannot be folded further: they must be written before more is added. */
  poisoned(): boolean;
  /** Takes everything that was folded since the last segment, which must be written by then. */
  take(): Segment;
  /** Returns once queries see the segment; may be called again after a failure. @throws as `add` */
  write(segment: Segment): Promise<void>;
}

export function createBacklog(target: ApplyTarget): Backlog {
  const { models, collections, parking } = target;
  let commands: RecordedCommand[] = [];
  let [events, batches] = [0, 0];
  let folded = new Map<string, Writes>();
  let poisoned: ParkedEntity[] = [];
  /** The writes that were taken and may not be durable yet. */
  let taken = new Map<string, Writes>();
  /** A document as it is after the write; undefined when the write removed it. */
  const written = (write: GuardedWrite): StoredDocument | undefined =>
    write.kind === 'put' ? { id: write.id, position: write.position, fields: write.fields } : undefined;

  /** The documents of these ids as the store has them, or will have them once the taken writes are durable. */
  async function documentsOf(model: string, ids: readonly string[]): Promise<ReadonlyMap<string, StoredDocument>> {
    const documents = new Map<string, StoredDocument>();
    const missing: string[] = [];
    for (const id of ids) {
      const write = taken.get(model)?.get(id);
      const document = write === undefined ? undefined : written(write);
      if (document !== undefined) documents.set(id, document);
      else if (write === undefined) missing.push(id);
    }
    const loaded = missing.length === 0 ? [] : ((await collections.get(model)?.getMany(missing)) ?? []);
    for (const document of loaded) documents.set(document.id, document);
    return documents;
  }

  async function fold(model: ReadModel, work: Work, stored: ReadonlyMap<string, StoredDocument>): Promise<void> {
    const writes: Writes = folded.get(model.name) ?? new Map<string, GuardedWrite>();
    folded.set(model.name, writes);
    let sinceYield = 0;
    for (const [id, steps] of work) {
      if (parking.has(model.name, id)) continue;
      const earlier = writes.get(id);
      const outcome = foldEntity(model, id, earlier === undefined ? stored.get(id) : written(earlier), steps);
      if (outcome.write !== undefined) writes.set(id, outcome.write);
      if (outcome.poisoned !== undefined) poisoned.push({ projection: model.name, id, ...outcome.poisoned });
      sinceYield += 1;
      if (sinceYield % documentsPerTurn === 0) await yieldToEventLoop();
    }
  }

  return {
    events: () => events,
    full: () => events >= tuning.segmentEvents || batches >= tuning.segmentBatches,
    poisoned: () => poisoned.length > 0,
    async add(more) {
      // Everything that can fail comes first.
      const prepared: { model: ReadModel; work: Work; stored: ReadonlyMap<string, StoredDocument> }[] = [];
      for (const model of models) {
        const work = workFor(model, more);
        if (work.size === 0) continue;
        const writes = folded.get(model.name);
        const ids: string[] = [];
        for (const id of work.keys()) if (writes?.has(id) !== true && !parking.has(model.name, id)) ids.push(id);
        prepared.push({ model, work, stored: await documentsOf(model.name, ids) });
      }
      for (const { model, work, stored } of prepared) await fold(model, work, stored);
      for (const command of more) {
        commands.push(command);
        events += command.events.length;
      }
      batches += 1;
    },
    take() {
      const segment: Segment = { commands, writes: folded, poisoned };
      taken = folded;
      [commands, events, batches, folded, poisoned] = [[], 0, 0, new Map(), []];
      return segment;
    },
    async write(segment) {
      // Each try starts over: documents that the store refuses are found again.
      const refused = [...segment.poisoned];
      const writing = [...segment.writes].map(([model, writes]) => {
        // An entity may have been parked after it was folded.
        const all = [...writes.values()].filter(({ id }) => !parking.has(model, id));
        return writeAll(target, model, all, refused);
      });
      // No write is left running after a failure: the next try would race with it.
      await Promise.allSettled(writing);
      await Promise.all(writing);
      await settlePoisoned(target, refused);
      if (taken === segment.writes) taken = new Map();
    },
  };
}

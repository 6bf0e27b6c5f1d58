/**
 * Compares the read models in use with a fresh fold of the log into another read store, which the caller discards. Changes
 * nothing in use. While a service writes to the same stores, a difference counts only if it remains after both sides have passed
 * the document's last event.
 */
import { sleep } from '../../kernel/background.js';
import { unreachable } from '../../kernel/errors.js';
import type { Clock } from '../../kernel/clock.js';
import { canonicalJson } from '../../kernel/json.js';
import type { Logger } from '../../kernel/logger.js';
import { passedBy, type EventStore } from '../../storage/event-store.js';
import type { Collection, FieldValue, Fields, ReadStore, StoredDocument } from '../../storage/read-store.js';
import { isInRange } from '../../storage/group-index.js';
import { startGroup, type Group } from '../engine/group.js';
import { placeOf, readLayout, versionIn, type Layout } from '../engine/layout.js';
import type { ReadModel } from '../read-model.js';
import { indexDifferences } from './check-index.js';
import { groupName, groupVersion, openCollections, readModels } from '../read-models.js';
import { tuning } from '../tuning.js';

export interface CheckOptions {
  readonly eventStore: EventStore;
  /** The store with the read models in use. */
  readonly readStore: ReadStore;
  /** An empty store for the fresh fold. */
  readonly scratch: ReadStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly only?: string | undefined;
  readonly version?: number;
  readonly models?: readonly ReadModel[];
  readonly signal: AbortSignal;
  onProgress(phase: 'folding' | 'comparing', done: number, of: number): void;
}

export interface CheckReport {
  readonly documents: number;
  /** The first differences, one sentence each. */
  readonly differences: readonly string[];
  readonly differenceCount: number;
  /** Documents whose last event the read models in use have not reached yet. */
  readonly behind: number;
}

/** The report under construction. */
interface Findings extends CheckReport {
  documents: number;
  readonly differences: string[];
  differenceCount: number;
  behind: number;
}

type Comparison =
  | { readonly kind: 'equal' }
  /** The read model in use has not reached the document's last event. */
  | { readonly kind: 'behind' }
  | { readonly kind: 'different'; readonly how: string };

/**
 * @returns undefined when the signal ended it
 * @throws Error with one sentence when the log cannot be folded; ServiceError `unavailable`
 */
export async function checkReadModels(options: CheckOptions): Promise<CheckReport | undefined> {
  const { readStore, scratch } = options;
  const release = options.version ?? groupVersion;
  const models = options.models ?? readModels;
  const compared = models.filter(({ name }) => options.only === undefined || name === options.only);
  if (compared.length === 0) {
    const names = models.map(({ name }) => name).join(', ');
    throw new Error(`there is no read model "${options.only}": expected one of ${names}`);
  }
  const fresh = await startGroup({ ...options, readStore: scratch, release, models, deletionTime: () => undefined });
  try {
    if (!(await folded(fresh, options))) return undefined;
    const layout = await readLayout(readStore, release);
    const live = await openCollections(readStore, compared, (model) => versionIn(layout, release, model));
    const copies = await openCollections(scratch, compared, release);
    const findings: Findings = { documents: 0, differences: [], differenceCount: 0, behind: 0 };
    for (const model of compared) {
      const { name, index } = model;
      const [inUse, copy] = [live.get(name), copies.get(name)];
      if (inUse === undefined || copy === undefined) continue;
      const over = model.expired?.(options.clock.now());
      const expired = (fields: Fields): boolean => over !== undefined && isInRange(index, fields, over);
      const side = { expired, name, inUse, copy, fresh, options, release, layout };
      const done = await compareCollections(side, findings);
      const wrong = done && index !== undefined ? await indexDifferences(name, inUse, index, options.signal) : [];
      if (!done || wrong === undefined) return undefined;
      findings.differenceCount += wrong.length;
      findings.differences.push(...wrong.slice(0, tuning.compareShown - findings.differences.length));
    }
    return findings;
  } finally {
    await fresh.close();
  }
}

/** Waits until the fresh fold has caught up; false when the signal ended it. @throws Error when it never will */
async function folded(fresh: Group, { eventStore, signal, onProgress }: CheckOptions): Promise<boolean> {
  const head = await eventStore.headPosition();
  for (;;) {
    const { caughtUp, position, unknownEvent, brokenLog, lastError } = fresh.status();
    onProgress('folding', Math.min(position, head), head);
    if (caughtUp) return true;
    if (signal.aborted) return false;
    if (unknownEvent !== null || brokenLog !== null || lastError?.startsWith('ProjectionsStopped') === true) {
      throw new Error(`the log cannot be folded: ${lastError ?? unknownEvent}`);
    }
    await sleep(tuning.probeEveryMs, signal);
  }
}

interface Side {
  readonly name: string;
  readonly inUse: Collection;
  readonly copy: Collection;
  readonly fresh: Group;
  readonly options: CheckOptions;
  readonly release: number;
  readonly layout: Layout;
  /** Whether a document is no longer shown. */
  expired(fields: Fields): boolean;
}

/** Compares every document that either side has; false when the signal ended it. */
async function compareCollections(side: Side, findings: Findings): Promise<boolean> {
  const { options, name, inUse, copy } = side;
  // First the documents in use, then those that only the fresh fold has.
  for (const [collection, other] of [
    [inUse, undefined],
    [copy, inUse],
  ] as const) {
    let after: string | undefined;
    let done = 0;
    for (;;) {
      if (options.signal.aborted) return false;
      const items = await collection.list(after, tuning.compareDocuments);
      after = items.at(-1)?.id;
      // Expired documents may have been removed on one side only.
      const ids = items.filter(({ fields }) => !side.expired(fields)).map(({ id }) => id);
      const compared = other === undefined ? [] : await other.getMany(ids);
      const comparedIds = new Set(compared.map(({ id }) => id));
      const fresh = ids.filter((id) => !comparedIds.has(id));
      findings.documents += fresh.length;
      await compareIds(side, fresh, findings);
      done += items.length;
      options.onProgress('comparing', done, items.length < tuning.compareDocuments ? done : done + items.length);
      if (items.length < tuning.compareDocuments) break;
    }
  }
  options.logger.debug({ read_model: name }, 'compared');
  return true;
}

/** Compares documents that are behind again, a few times; those still behind count as late. */
async function compareIds(side: Side, ids: readonly string[], findings: Findings): Promise<void> {
  let waiting = ids;
  for (let round = 1; waiting.length > 0; round += 1) {
    const comparisons = await compareNow(side, waiting);
    const late: string[] = [];
    for (const [id, comparison] of comparisons) {
      switch (comparison.kind) {
        case 'equal':
          break;
        case 'behind':
          late.push(id);
          break;
        case 'different':
          findings.differenceCount += 1;
          if (findings.differences.length < tuning.compareShown) {
            findings.differences.push(`${side.name} ${id}: ${comparison.how}`);
          }
          break;
        default:
          unreachable(comparison);
      }
    }
    waiting = late;
    if (waiting.length === 0) return;
    // If no instance projects, waiting once was enough.
    const patient = findings.behind === 0 && round < tuning.compareRounds;
    if (!patient || side.options.signal.aborted) {
      findings.behind += waiting.length;
      return;
    }
    await sleep(2 * tuning.checkpointEveryMs, side.options.signal);
  }
}

/**
 * The order of reads matters: first the checkpoint of the read models in use, then their documents, and only then is the fresh
 * fold brought to the end of the log.
 */
async function compareNow(side: Side, ids: readonly string[]): Promise<readonly (readonly [string, Comparison])[]> {
  const { inUse, copy, fresh, options, release, layout } = side;
  const checkpoint = await options.readStore.loadCheckpoint(groupName, placeOf(release, layout.number));
  const passed = checkpoint === undefined ? 0 : passedBy(checkpoint);
  const current = new Map((await inUse.getMany(ids)).map((document) => [document.id, document]));
  const head = await options.eventStore.headPosition();
  const upToDate = await fresh.reached(head, tuning.compareGiveUpMs);
  if (!upToDate) throw new Error('the fresh fold no longer follows the log');
  const expected = new Map((await copy.getMany(ids)).map((document) => [document.id, document]));
  return ids.map((id) => [id, compare(current.get(id), expected.get(id), passed)]);
}

/** @param passed position that the read models in use have passed */
function compare(live: StoredDocument | undefined, fresh: StoredDocument | undefined, passed: number): Comparison {
  if (fresh === undefined) {
    if (live === undefined) return { kind: 'equal' };
    return { kind: 'different', how: `shown at position ${live.position}, but the log has no such document` };
  }
  if (live === undefined) {
    if (passed < fresh.position) return { kind: 'behind' };
    return { kind: 'different', how: `missing; the log has it since position ${fresh.position}` };
  }
  if (live.position < fresh.position && passed < fresh.position) return { kind: 'behind' };
  const fields = differingFields(live.fields, fresh.fields);
  if (live.position === fresh.position && fields.length === 0) return { kind: 'equal' };
  const positions =
    live.position === fresh.position
      ? `position ${live.position}`
      : `position ${live.position}, the log says ${fresh.position}`;
  return { kind: 'different', how: [positions, ...fields].join('; ') };
}

function differingFields(live: Fields, fresh: Fields): readonly string[] {
  const names = [...new Set([...Object.keys(live), ...Object.keys(fresh)])].sort();
  return names.flatMap((name) => {
    const [actual, expected] = [textOf(live[name]), textOf(fresh[name])];
    return actual === expected ? [] : [`${name} is ${short(actual)}, the log says ${short(expected)}`];
  });
}

const textOf = (value: FieldValue | undefined): string =>
  value === undefined
    ? 'missing'
    : value instanceof Uint8Array
      ? Buffer.from(value).toString('hex')
      : canonicalJson(value);

const short = (text: string): string => (text.length <= 160 ? text : `${text.slice(0, 160)}…`);

/**
 * Read models beside another log than the one they were made from, usually an older one that was restored: noticed at a
 * start and at each new subscription, however far that log has grown since.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { setRetentions } from '../../src/commands/facts.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { streams } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { ofAnotherLog } from '../../src/projections/engine/another-log.js';
import { groupName, groupVersion } from '../../src/projections/read-models.js';
import type { EventStore, SubscribeOptions } from '../../src/storage/event-store.js';
import { eventually } from '../support/eventually.js';
import {
  append,
  dump,
  openReadSide,
  planned,
  randomLog,
  sessionOpened,
  someUsers,
  userCreated,
  type Planned,
  type ReadSide,
} from '../support/read-side.js';

const node = uuidFromName('a node');
/** Longer than what follows it, so that no test depends on a position. */
const before = randomLog(5, 30);
const facts = (count: number): Planned[] => Array.from({ length: count }, () => sessionOpened(node));
const edit = (name: string): Planned =>
  planned(streams.fleet, [
    { type: 'NodeCreated', data: { node_id: uuidFromName(name), name, description: null, address: null, labels: {} } },
  ]);

let side: ReadSide;
/** The log that was restored. */
let other: ReadSide;
const beside = (): Promise<string | undefined> => ofAnotherLog(other.stores.eventStore, side.stores.readStore);

/** Projects a log; the stores stay open. */
async function projected(log: readonly Planned[]): Promise<void> {
  await side.append(log);
  await (await side.started()).close();
}

beforeEach(async () => {
  side = await openReadSide();
  other = await openReadSide();
  await other.append(before);
});
afterEach(async () => {
  await side.close();
  await other.close();
});

describe('at a start', () => {
  it('a log that ends before the checkpoint is refused', async () => {
    await projected([...before, edit('one')]);
    expect(await beside()).toMatch(/^the read models hold the log up to position \d+, but it ends at \d+: /);
  });

  it('a log that lacks the last edit is refused, although facts have taken it beyond the checkpoint', async () => {
    await projected([...before, edit('one')]);
    await other.append(facts(5));
    expect(await beside()).toMatch(/^the read models hold revision \d+ of svc-fleet, which this log lacks: /);
  });

  it('a log that has another edit in its place is refused, and so is one that differs only in facts', async () => {
    await projected([...before, edit('one')]);
    await other.append([edit('two'), ...facts(5)]);
    expect(await beside()).toMatch(
      /^the read models hold revision \d+ of svc-fleet as event \S+, but it is \S+ here: /,
    );
  });

  it('a log that differs only in facts is refused', async () => {
    await projected([...before, ...facts(3)]);
    await other.append(facts(9));
    expect(await beside()).toMatch(/^the read models hold revision \d+ of svc-agents-\d\d as event \S+, but it is /);
  });

  it('the same log is accepted, also when the facts up to the checkpoint have expired', async () => {
    await setRetentions(side.stores.eventStore);
    await projected([...before, ...facts(3)]);
    const { eventStore, readStore } = side.stores;
    expect(await ofAnotherLog(eventStore, readStore)).toBeUndefined();
    side.clock.advance(100 * 24 * 3_600_000);
    await side.append(facts(1));
    await side.stores.eventStore.trim();
    expect(await ofAnotherLog(eventStore, readStore)).toBeUndefined();
    side.clock.advance(100 * 24 * 3_600_000);
    expect(await ofAnotherLog(eventStore, readStore)).toBeUndefined();
  });

  it('a checkpoint of an earlier release says nothing about events, and the next one does', async () => {
    await projected([...before, edit('one')]);
    const { readStore } = side.stores;
    const point = await readStore.loadCheckpoint(groupName, groupVersion);
    await readStore.deleteCheckpoint(groupName, groupVersion);
    await readStore.saveCheckpoint(groupName, groupVersion, {
      commit: point!.commit,
      prepare: point!.prepare,
      anchors: [],
    });
    await other.append([edit('two'), ...facts(5)]);
    expect(await beside()).toBeUndefined();
    await projected([userCreated({ id: uuidFromName('eve'), name: 'eve' })]);
    expect(await beside()).toMatch(/svc-accounts/);
  });
});

/** A log that can be exchanged under its readers; their subscriptions drop. */
function exchangeable(first: EventStore): EventStore & { to(next: EventStore): void } {
  let current = first;
  let cut = new AbortController();
  async function* subscribe(options: SubscribeOptions): ReturnType<EventStore['subscribe']> & AsyncGenerator {
    const signal = AbortSignal.any([options.signal, cut.signal]);
    yield* current.subscribe({ ...options, signal });
    throw new ServiceError('unavailable', 'cut');
  }
  return {
    ...first,
    subscribe,
    read: (stream, options) => current.read(stream, options),
    headPosition: () => current.headPosition(),
    to(next) {
      current = next;
      cut.abort();
      cut = new AbortController();
    },
  };
}

describe('under a running service', () => {
  it('another log ends the read models with a sentence, and none of its events is applied', async () => {
    const log = exchangeable(side.stores.eventStore);
    await side.append([...before, edit('one')]);
    const sentences: string[] = [];
    const projections = await side.started({ eventStore: log, onAnotherLog: (sentence) => sentences.push(sentence) });
    const documents = await dump(side.stores.readStore);
    await other.append([edit('two'), edit('three'), userCreated(someUsers[0]!)]);
    log.to(other.stores.eventStore);
    await eventually(() => sentences).toHaveLength(1);
    expect(sentences[0]).toMatch(/^the read models hold revision \d+ of svc-fleet as event \S+, but it is \S+ here: /);
    expect(projections.status().caughtUp).toBe(false);
    expect(await dump(side.stores.readStore)).toEqual(documents);
  });

  it('a log that lacks what was read is not followed, in case a server is behind, until it has it', async () => {
    const log = exchangeable(side.stores.eventStore);
    await side.append([...before, edit('one')]);
    const sentences: string[] = [];
    const projections = await side.started({ eventStore: log, onAnotherLog: (sentence) => sentences.push(sentence) });
    await other.append(facts(5));
    log.to(other.stores.eventStore);
    await eventually(() => projections.status().lastError).toMatch(/which this log lacks/);
    expect(projections.status().caughtUp).toBe(false);
    const { position } = await append(side.stores.eventStore, edit('two'));
    log.to(side.stores.eventStore);
    expect(await projections.reached(position!, 20_000)).toBe(true);
    await eventually(() => projections.status().caughtUp).toBe(true);
    expect(sentences).toEqual([]);
  });
});

/**
 * Other programs write to the same server. Nothing of their streams is handed out, whatever the names begin with, and what
 * they write into a stream of this service is handed out as theirs, by reads and subscriptions alike.
 */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { isForeign, agentStreams, streams, type StoredEvent } from '../../../src/kernel/event.js';
import { lastRevision, wholeStream, type LogItem } from '../../../src/storage/event-store.js';
import { foreignKinds } from '../../support/foreign-events.js';
import { commandOf } from '../contract/appending.js';
import { openFixture, takeUntil, type Fixture } from './fixture.js';

let fixture: Fixture;
const stop = new AbortController();
beforeEach(async () => {
  fixture = await openFixture();
});
afterEach(() => fixture.close());

const write = (stream: string, kind: keyof typeof foreignKinds): void =>
  void fixture.server.log.append(stream, { kind: 'any' }, [{ id: randomUUID(), ...foreignKinds[kind] }]);
const seen = (events: readonly StoredEvent[]) =>
  events.map((event) => [event.stream, event.revision, isForeign(event) ? event.foreign : 'own']);
const followed = async (names: readonly string[]): Promise<readonly StoredEvent[]> => {
  const items: LogItem[] = await takeUntil(
    fixture.store.subscribe({ streams: names, after: 'start', signal: stop.signal }),
    ({ kind }) => kind === 'caught_up',
  );
  return items.flatMap((item) => (item.kind === 'events' ? item.events : []));
};

it('hands out what others write into a stream as theirs, with what shows it', async () => {
  const names = [streams.fleet, streams.signins, agentStreams[3]!];
  for (const name of names) {
    await fixture.store.append(name, 'no_stream', commandOf(1));
    for (const kind of Object.keys(foreignKinds) as (keyof typeof foreignKinds)[]) write(name, kind);
    await fixture.store.append(name, 'any', commandOf(1));
  }
  const expected = names.flatMap((name) => [
    [name, 0, 'own'],
    [name, 1, 'it has no metadata'],
    [name, 2, 'its metadata names no command'],
    [name, 3, 'it has no metadata'],
    [name, 4, 'its metadata is not a JSON object'],
    [name, 5, 'its data is not a JSON object'],
    [name, 6, 'its data is not a JSON object'],
    [name, 7, "it has the server's type $>"],
    [name, 8, 'own'],
  ]);
  expect(seen(await followed(names))).toEqual(expected);
  const read: StoredEvent[] = [];
  for (const name of names) for await (const event of wholeStream(fixture.store, name)) read.push(event);
  expect(seen(read)).toEqual(expected);
});

it('hands out nothing of other streams: of similar names, of projections, of metadata, of links', async () => {
  await fixture.store.append(streams.fleet, 'no_stream', commandOf(1));
  const others = [
    'svc-orders-1',
    'svc-fleet-2',
    'svc-fleet\n',
    'svc-fleeT',
    'xsvc-fleet',
    'svc-agents-16',
    'svc-agents-3',
    'svc-',
    '$ce-svc',
    '$et-NodeCreated',
    '$streams',
    '$$svc-fleet',
  ];
  for (const name of others) write(name, name.startsWith('$ce') ? 'link' : 'withoutMetadata');
  expect(seen(await followed([streams.fleet, ...agentStreams]))).toEqual([[streams.fleet, 0, 'own']]);
  expect(fixture.lines.filter(({ level }) => level !== 'debug')).toEqual([]);
});

it('counts them among the revisions, so that appends behind them go on', async () => {
  await fixture.store.append(streams.signins, 'no_stream', commandOf(1));
  write(streams.signins, 'binary');
  const head = await lastRevision(fixture.store, streams.signins);
  expect(head).toBe(1);
  expect(await fixture.store.append(streams.signins, head!, commandOf(1))).toMatchObject({
    kind: 'appended',
    revision: 2,
  });
});

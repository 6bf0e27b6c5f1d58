/** The metadata of a stream holds more than our retention: what operators put there stays, also at every start. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { setRetentions } from '../../../src/commands/facts.js';
import { appendAtEnd, commandOf, readAll } from '../contract/appending.js';
import { openFixture, type Fixture } from './fixture.js';

describe('the retention of a stream', () => {
  let fixture: Fixture;
  beforeEach(async () => {
    fixture = await openFixture();
  });
  afterEach(() => fixture.close());

  /** What an operator or a tool writes. */
  function write(stream: string, json: string): void {
    const event = { id: crypto.randomUUID(), type: '$metadata', isJson: true, metadata: new Uint8Array() };
    fixture.server.log.append(`$$${stream}`, { kind: 'any' }, [{ ...event, data: Buffer.from(json) }]);
  }
  const texts = (stream: string): string[] =>
    (fixture.server.log.stream(`$$${stream}`)?.events ?? []).map(({ data }) => Buffer.from(data).toString());
  const newest = (stream: string): unknown => JSON.parse(texts(stream).at(-1) ?? 'null');

  it('leaves everything else in the metadata as it is', async () => {
    const theirs = { $acl: { $r: ['ops', 'svc'], $w: 'svc' }, $tb: 3, $cacheControl: 60, $maxCount: 500, owner: 'ops' };
    write('svc-a', JSON.stringify(theirs));
    await fixture.store.setRetention('svc-a', { maxAgeSeconds: 7 });
    expect(newest('svc-a')).toEqual({ ...theirs, $maxAge: 7 });
    await fixture.store.setRetention('svc-a', { maxAgeSeconds: 8 });
    expect(newest('svc-a')).toEqual({ ...theirs, $maxAge: 8 });
  });

  it('is written only when it differs: a second start writes nothing', async () => {
    await setRetentions(fixture.store);
    const { length } = fixture.server.log.all;
    expect(length).toBeGreaterThan(10);
    await setRetentions(fixture.store);
    expect(fixture.server.log.all).toHaveLength(length);
  });

  it('keeps what somebody else writes at the same time', async () => {
    write('svc-a', '{"a":1}');
    let first = true;
    fixture.server.faults.choose = () => {
      // The metadata has been read, and the append has arrived.
      if (first) write('svc-a', '{"a":2}');
      first = false;
      return undefined;
    };
    await fixture.store.setRetention('svc-a', { maxCount: 9 });
    expect(newest('svc-a')).toEqual({ a: 2, $maxCount: 9 });
    expect(texts('svc-a')).toHaveLength(3);
  });

  it.each([
    { what: 'its answer is lost', fault: { kind: 'cut', written: true } },
    { what: 'it was not written', fault: { kind: 'cut', written: false } },
    { what: 'the server is not ready', fault: { kind: 'not_ready' } },
  ] as const)('is set once when $what', async ({ fault }) => {
    write('svc-a', '{"a":1}');
    fixture.server.faults.appends = [fault];
    await fixture.store.setRetention('svc-a', { maxCount: 9 });
    expect(newest('svc-a')).toEqual({ a: 1, $maxCount: 9 });
    expect(texts('svc-a')).toHaveLength(2);
  });

  it('is unavailable when it cannot be set', async () => {
    fixture.server.faults.choose = () => ({ kind: 'deadline' });
    await expect(fixture.store.setRetention('svc-a', { maxCount: 9 })).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('is left alone, with a warning, beside a number that would not survive being written again', async () => {
    await appendAtEnd(fixture.store, 'svc-a', commandOf(1));
    fixture.server.log.softDelete('svc-a', { kind: 'any' });
    const [deleted] = texts('svc-a');
    expect(deleted).toContain('9223372036854775807');
    await fixture.store.setRetention('svc-a', { maxCount: 9 });
    expect(texts('svc-a')).toEqual([deleted]);
    expect(fixture.lines.filter(({ level }) => level === 'warn')).toHaveLength(1);
    // The next append brings the stream back, as the server does it.
    expect(await appendAtEnd(fixture.store, 'svc-a', commandOf(1))).toBe(1);
    await fixture.store.setRetention('svc-a', { maxCount: 9 });
    expect(newest('svc-a')).toEqual({ $tb: 1, $maxCount: 9 });
    expect(await readAll(fixture.store, 'svc-a')).toHaveLength(1);
  });

  it('replaces metadata that no server understands', async () => {
    write('svc-a', 'not json');
    await fixture.store.setRetention('svc-a', { maxCount: 9 });
    expect(newest('svc-a')).toEqual({ $maxCount: 9 });
  });
});

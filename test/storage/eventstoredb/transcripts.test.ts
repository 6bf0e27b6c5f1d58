/** The test server, and the server that SVC_TEST_EVENTSTORE_URL names, answer like a real 23.10.8. */
import { readFileSync } from 'node:fs';
import { Metadata } from '@grpc/grpc-js';
import { beforeAll, describe, expect, it } from 'vitest';
import { createSteppedClock } from '../../servers/eventstoredb/clock.js';
import { replay, statusDifferences } from '../../servers/eventstoredb/replay.js';
import { startEventStoreDb } from '../../servers/eventstoredb/server.js';
import { differences, type Scenario, type Transcripts } from '../../servers/eventstoredb/transcript.js';

const transcripts = JSON.parse(
  readFileSync(new URL('../../eventstoredb-transcripts.json', import.meta.url), 'utf8'),
) as Transcripts;

describe('the test server answers as 23.10.8 did', () => {
  async function played(scenario: Scenario): Promise<readonly string[]> {
    const clock = createSteppedClock();
    const server = await startEventStoreDb({ clock });
    try {
      // What comes later than this after an answer, and should not, is found in the next step.
      return await replay(scenario, {
        target: `127.0.0.1:${server.port}`,
        server: '23.10.8',
        quietMs: 20,
        time: clock,
      });
    } finally {
      await server.close();
    }
  }
  /** All at once, because they mostly wait. */
  let found: readonly Promise<readonly string[]>[];
  beforeAll(() => void (found = transcripts.scenarios.map(played)));
  it.each(transcripts.scenarios.map(({ id, title, steps }, index) => [id, title, steps.length, index] as const))(
    '%s: %s, %i steps',
    async (_id, _title, _steps, index) => expect(await found[index]).toEqual([]),
  );
});

it('a later patch of the server, or of the web server below it, answers the same', () => {
  const answered = (version: string) =>
    differences({ eventStoreServerVersion: '23.10.8' }, { eventStoreServerVersion: version }, new Map(), 'features');
  expect(answered('23.10.15')).toEqual([]);
  expect(answered('24.10.0')).toHaveLength(1);
  const ended = (trailers: Record<string, string>) => {
    const metadata = new Metadata();
    for (const [key, value] of Object.entries(trailers)) metadata.set(key, value);
    const expected = { code: 9, trailers: { exception: 'stream-deleted' } };
    return statusDifferences(expected, { code: 9, details: '', metadata }, 'status');
  };
  expect(ended({ exception: 'stream-deleted', 'content-length': '0', server: 'Kestrel' })).toEqual([]);
  expect(ended({ exception: 'stream-deleted', other: '0' })).toHaveLength(1);
});

const url = process.env['SVC_TEST_EVENTSTORE_URL'];
if (url !== undefined && url !== '') {
  describe('the server of SVC_TEST_EVENTSTORE_URL answers as the transcripts say', () => {
    const target = /^esdb:\/\/(?:[^@/]*@)?([^,/?]+)/.exec(url)?.[1] ?? '';
    const server = process.env['SVC_TEST_EVENTSTORE_VERSION'] ?? '23.10.8';
    // Needs a fresh server: an older log has other checkpoints and streams.
    for (const scenario of transcripts.scenarios) {
      it(`${scenario.id}: ${scenario.title}`, { timeout: 120_000 }, async () => {
        expect(await replay(scenario, { target, server, quietMs: 350 })).toEqual([]);
      });
    }
  });
} else {
  const notice = 'NOT RUN against a real EventStoreDB: SVC_TEST_EVENTSTORE_URL is not set';
  process.stderr.write(`\n*** transcripts: ${notice} ***\n`);
  describe.skip(`transcripts: ${notice}`, () => {
    it.skip(notice);
  });
}

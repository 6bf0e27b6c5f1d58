/** How the archive of a backup is written by its thread, and what is refused: `src/backups/write-archive.ts`. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withInstallation } from '../../bench/installation.js';
import { writeFleetLog } from '../../bench/fleet-log.js';
import type { Installation } from '../../src/app/installation/installation.js';
import { archiveScope, logCheck } from '../../src/backups/archive-scope.js';
import { writeArchive } from '../../src/backups/write-archive.js';
import { isForeign, type StoredEvent } from '../../src/kernel/event.js';
import type { EventStore, LogItem } from '../../src/storage/event-store.js';
import { verifyArchive, verifyLog } from '../../src/storage/log-archive/verify-log.js';
import { projectRoot } from '../support/project-root.js';

const entry = pathToFileURL(join(projectRoot, 'dist/test-programs/src/backups/archive-thread.js'));
const root = mkdtempSync(join(tmpdir(), 'archives-'));
const at = '2026-01-01T00:00:00.000Z';
const unending = { check: logCheck, signal: new AbortController().signal, onProgress: () => undefined };
let installation: Installation;
let done: () => void;
let closed: Promise<void>;
beforeAll(async () => {
  await new Promise<void>((opened) => {
    closed = withInstallation(join(root, 'data'), async (made) => {
      installation = made;
      await writeFleetLog(made, 1_200);
      opened();
      await new Promise<void>((resolve) => (done = resolve));
    });
  });
});
afterAll(async () => {
  done();
  await closed;
  rmSync(root, { recursive: true, force: true });
});

function write(
  name: string,
  change: (event: StoredEvent) => readonly StoredEvent[] = (event) => [event],
  signal: AbortSignal = unending.signal,
  program = entry,
): Promise<unknown> {
  const { eventStore, identity, logChain } = installation;
  const subscribe: EventStore['subscribe'] = async function* (options) {
    for await (const item of eventStore.subscribe(options)) {
      yield item.kind === 'events' ? ({ ...item, events: item.events.flatMap(change) } satisfies LogItem) : item;
    }
  };
  const { installationId } = identity;
  const writer = { eventStore: { subscribe }, installationId, chainKey: logChain.key, entry: program };
  return writeArchive(writer, join(root, name), at, signal);
}

test('it holds the whole log, and says so', async () => {
  const path = join(root, 'whole');
  const [written, { log, header }] = [await write('whole'), await verifyArchive(path, unending)];
  const { streams } = archiveScope;
  const { log: original } = await verifyLog(installation.eventStore, { ...unending, streams });
  expect(log.contentSha256).toBe(original.contentSha256);
  expect(written).toMatchObject({ kind: 'written', events: original.events, bytes: expect.any(Number) });
  const { installationId } = installation.identity;
  expect(header).toMatchObject({ installation_id: installationId, exported_at: at, up_to: null });
});

test.each<[string, (event: StoredEvent) => readonly StoredEvent[], RegExp]>([
  [
    'was changed',
    (e) => [e.revision === 900 && !isForeign(e) ? { ...e, data: { ...e.data, extra: 1 } } : e],
    /does not verify: .*900/,
  ],
  ['lacks its keyring', (e) => (e.stream === 'svc-keyring' ? [] : [e]), /does not verify: it lacks the keyring/],
  [
    'has another keyring than was recorded',
    (e) => [e.stream === 'svc-keyring' && !isForeign(e) ? { ...e, data: { ...e.data, ct: 'AAAA' } } : e],
    /does not verify: the keyring in the event log is version 1/,
  ],
  ['lacks an event', (e) => (e.stream === 'svc-fleet' && e.revision === 900 ? [] : [e]), /does not verify: .*90[01]/],
  ['has an unknown event', (e) => [e.revision === 900 ? { ...e, type: 'Unheard' } : e], /does not verify: .*Unheard/],
])('a log that %s gives no backup', async (name, change, reason) => {
  await expect(write(name, change)).rejects.toThrow(reason);
});

test('a folder that is not there, a stop in the middle, and a thread that is lost', async () => {
  await expect(write('missing/one')).rejects.toThrow('the folder of backups cannot be used (ENOENT)');
  const stop = new AbortController();
  let seen = 0;
  const stopping = (event: StoredEvent): readonly StoredEvent[] => {
    if ((seen += 1) === 1_000) stop.abort(new Error('the service stops'));
    return [event];
  };
  await expect(write('stopped', stopping, stop.signal)).rejects.toThrow('the service stops');
  expect(readdirSync(root)).not.toContain('stopped');
  const lost = new URL('data:text/javascript,process.exit(3)');
  await expect(write('lost', undefined, undefined, lost)).rejects.toThrow(
    'a worker thread was lost: it ended with code 3',
  );
});

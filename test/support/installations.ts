/** Installations for tests of the maintenance commands: stores in temporary folders, filled with a random log. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { captureFleet, encodeFleet } from '../../src/domain/fleet/checkpoint.js';
import type { ServiceEvent } from '../../src/domain/service/identity.js';
import { allStreams, streams, type RecordedCommand, type RecordedEvent } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { EmbeddedStores } from '../../src/storage/embedded/open-embedded.js';
import type { EventStore } from '../../src/storage/event-store.js';
import type { ReadStore } from '../../src/storage/read-store.js';
import { exportLog, type ExportReport } from '../../src/storage/log-archive/export-log.js';
import { importLog, type ImportReport } from '../../src/storage/log-archive/import-log.js';
import { readWholeLog } from '../../src/storage/follow.js';
import { archiveScope, logCheck } from '../../src/backups/archive-scope.js';
import { importedProjections } from '../../scripts/maintenance/installation.js';
import { sealed } from './fleet.js';
import { createManualClock, type ManualClock } from './manual-clock.js';
import { append, configApplied, fleetAfter, nodeCreated, planned, randomLog } from './read-side.js';
import { openTemporaryStores, type TemporaryStores } from './temporary-stores.js';

export interface TestInstallation extends TemporaryStores {
  readonly clock: ManualClock;
}

export interface Installations {
  /** A folder for archives. */
  readonly folder: string;
  /** Opens stores, new ones unless the folder has some; they are closed and deleted with the rest. */
  open(dataDir?: string): Promise<TestInstallation>;
  close(): Promise<void>;
}

export function createInstallations(): Installations {
  const folder = mkdtempSync(join(tmpdir(), 'archives-'));
  const opened: TemporaryStores[] = [];
  return {
    folder,
    async open(dataDir) {
      const clock = createManualClock();
      const stores = await openTemporaryStores(clock, silentLogger, dataDir);
      opened.push(stores);
      return { ...stores, clock };
    },
    async close() {
      await Promise.all(opened.map((stores) => stores.close()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export const installationName = uuidFromName('an installation');

const identity: ServiceEvent = {
  type: 'ServiceIdentityCreated',
  data: {
    installation_id: installationName,
    static_public: 'c3RhdGlj',
    static_private: sealed,
    signing_public: 'c2lnbg',
    signing_private: sealed,
  },
};

/** Writes the identity of a service, a random log after it. */
export async function fill(
  { eventStore }: Pick<EmbeddedStores, 'eventStore'>,
  seed: number,
  length = 40,
): Promise<void> {
  const log = [planned(streams.service, [identity]), ...randomLog(seed, length)];
  for (const one of log) await append(eventStore, one);
}

/** Appends `count` facts about three nodes in turns; with `create`, creates the nodes first. */
export async function appendFacts(eventStore: EventStore, count: number, create = false): Promise<void> {
  const names = ['a', 'b', 'c'].map((name) => `fact node ${name}`);
  const nodes = names.map(uuidFromName);
  for (const name of create ? names : []) await append(eventStore, nodeCreated(uuidFromName(name), name));
  for (let done = 0; done < count; done += 50) {
    const node = nodes[(done / 50) % nodes.length] ?? '';
    const [first, ...more] = Array.from({ length: Math.min(50, count - done) }, (_, index) =>
      configApplied(node, done + index),
    );
    if (first !== undefined) await append(eventStore, first, ...more);
  }
}

export async function wholeLog(eventStore: EventStore): Promise<readonly RecordedCommand[]> {
  const all: RecordedCommand[] = [];
  const options = { streams: allStreams, after: 'start', signal: new AbortController().signal } as const;
  for await (const commands of readWholeLog(eventStore, options)) all.push(...commands);
  return all;
}

/** The events without their positions, which each store counts its own way. */
export function contents(log: readonly RecordedCommand[]): readonly Omit<RecordedEvent, 'position'>[] {
  return log.flatMap(({ events }) => events.map(({ position: _position, ...rest }) => rest));
}

/** The fleet after the log as a checkpoint, generations included. */
export function fleetBytes(log: readonly RecordedCommand[]): string {
  return Buffer.concat([...encodeFleet(captureFleet(fleetAfter(log)))]).toString('utf8');
}

export interface AnyStores {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
}

const never = new AbortController().signal;

export function exportTo(
  path: string,
  { eventStore }: Pick<AnyStores, 'eventStore'>,
  more: Partial<Parameters<typeof exportLog>[0]> = {},
): Promise<ExportReport | undefined> {
  return exportLog({
    ...archiveScope,
    path,
    eventStore,
    upTo: null,
    installationId: installationName,
    archiveId: uuidFromName(path),
    exportedAt: '2025-01-01T00:00:00.000Z',
    check: logCheck,
    signal: never,
    onProgress: () => undefined,
    ...more,
  });
}

export function importFrom(
  path: string,
  { eventStore, readStore }: AnyStores,
  more: Partial<Parameters<typeof importLog>[0]> = {},
): Promise<ImportReport | undefined> {
  return importLog({
    path,
    eventStore,
    readStore,
    streams: archiveScope.streams,
    projections: importedProjections,
    signal: never,
    onProgress: () => undefined,
    ...more,
  });
}

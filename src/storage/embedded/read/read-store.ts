/**
 * The embedded read store: the port `ReadStore` on an LMDB environment of its own, so that a flush of the log never
 * waits for a flush of the read models. Implements `docs/architecture.md#storage`.
 */
import type { Clock } from '../../../kernel/clock.js';
import { ServiceError } from '../../../kernel/errors.js';
import type { Logger } from '../../../kernel/logger.js';
import {
  answerUnavailable,
  answeringCollection,
  answeringCollections,
  answeringLeases,
} from '../../answer-unavailable.js';
import { isAfter } from '../../event-store.js';
import type { Checkpoint, ReadStore } from '../../read-store.js';
import { openEnvironment } from '../environment.js';
import { createGroupWriter, type RunOptions } from '../group-writer.js';
import type { Ownership } from '../ownership.js';
import { createCollections } from './collections.js';
import { readDatabases, type ReadBatch } from './layout.js';
import { createLeases } from './leases.js';

const checkpointKey = (projection: string, version: number): Buffer =>
  Buffer.from(`checkpoint/${projection}@${version}`);
const activeKey = (projection: string): Buffer => Buffer.from(`active/${projection}`);

function parse<T>(value: Buffer | undefined): T | undefined {
  return value === undefined ? undefined : (JSON.parse(value.toString('utf8')) as T);
}

/**
 * Opens the read store in the folder `path` and finishes what a crash interrupted.
 * @throws the library's error when its files cannot be opened
 */
export async function openReadStore(
  path: string,
  ownership: Ownership,
  clock: Clock,
  logger: Logger,
): Promise<ReadStore> {
  const environment = openEnvironment({ path, databases: readDatabases, mixed: true, ownership, logger });
  const writer = createGroupWriter(environment);
  let closing: Promise<void> | undefined;

  async function run<T>(operation: (batch: ReadBatch) => T, options?: RunOptions): Promise<T> {
    const written = await writer.run(operation, options);
    if (written.kind === 'durable') return written.value;
    throw new ServiceError('unavailable', `The read store cannot be written now: ${written.cause}.`);
  }

  const collections = createCollections(environment, run);
  const leases = createLeases(environment, run, clock);
  await collections.recover();

  return {
    collection: answeringCollections(async (spec) => answeringCollection(await collections.open(spec))),
    drop: answerUnavailable(collections.drop),
    loadCheckpoint: answerUnavailable(async (projection: string, version: number) =>
      parse<Checkpoint>(environment.get('state', checkpointKey(projection, version))),
    ),
    saveCheckpoint: answerUnavailable(async (projection: string, version: number, checkpoint: Checkpoint) => {
      const key = checkpointKey(projection, version);
      await run((batch) => {
        const stored = parse<Checkpoint>(batch.get('state', key));
        if (stored !== undefined && !isAfter(checkpoint, stored)) return;
        batch.put('state', key, Buffer.from(JSON.stringify(checkpoint)));
      });
    }),
    deleteCheckpoint: answerUnavailable((projection: string, version: number) =>
      run((batch) => batch.remove('state', checkpointKey(projection, version))),
    ),
    activeVersion: answerUnavailable(async (projection: string) =>
      parse<number>(environment.get('state', activeKey(projection))),
    ),
    activate: answerUnavailable((projection: string, version: number) =>
      run((batch) => batch.put('state', activeKey(projection), Buffer.from(`${version}`))),
    ),
    leases: answeringLeases(leases),
    // The log of the same folder knows more.
    time: async () => undefined,
    ping: answerUnavailable(async () => {
      if (closing !== undefined) throw new ServiceError('unavailable', 'The read store is closed.');
      if (writer.failing())
        await run((batch) => batch.put('state', Buffer.from('probe'), Buffer.from(`${clock.now()}`)));
      environment.probe();
    }),
    close() {
      closing ??= (async () => {
        await writer.close();
        await environment.close();
      })();
      return closing;
    },
  };
}

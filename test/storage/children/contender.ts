/**
 * A process that fights for a log without the folder's lock: it opens the log and appends until it has enough, or until
 * another process has taken the log over; then it ends, as the service does. Arguments: data folder, own name, number of
 * appends that must be acknowledged. Lines: `ack <event id> <stream> <revision> <position>` per acknowledged append,
 * `lost <cause>` when the log was lost, `done` when there were enough.
 */
import { join } from 'node:path';
import { systemClock } from '../../../src/kernel/clock.js';
import { errorText } from '../../../src/kernel/errors.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { openEventStore } from '../../../src/storage/embedded/log/event-store.js';
import { createOwnership } from '../../../src/storage/embedded/ownership.js';
import { lastRevision } from '../../../src/storage/event-store.js';
import { commandOf } from '../contract/appending.js';

const [dataDir = '', name = '', wanted = '0'] = process.argv.slice(2);
let acknowledged = 0;
// Not written synchronously: the pipe may be full.
const say = (line: string): boolean => process.stdout.write(`${line}\n`);

const store = openEventStore(join(dataDir, 'log'), createOwnership(), systemClock, silentLogger);
let lost: string | undefined;

/** Appends to `stream` until there are enough, or until an append is refused. */
async function appendTo(stream: string, shared: boolean): Promise<void> {
  let head = await lastRevision(store, stream);
  while (lost === undefined && acknowledged < Number(wanted)) {
    const [event] = commandOf(1);
    if (event === undefined) return;
    const outcome = await store.append(stream, shared ? 'any' : (head ?? 'no_stream'), [event]);
    if (outcome.kind === 'appended') {
      acknowledged += 1;
      head = outcome.revision;
      say(`ack ${event.id} ${stream} ${outcome.revision} ${outcome.position ?? -1}`);
    } else if (outcome.kind === 'unavailable' || outcome.kind === 'unknown') {
      lost = outcome.cause;
    } else {
      say(`unexpected ${JSON.stringify(outcome)}`);
      return;
    }
  }
}

// In 48 streams of its own and one that both processes use.
const own = Array.from({ length: 48 }, (_, index) => appendTo(`svc-${name}-${index}`, false));
const shared = Array.from({ length: 16 }, () => appendTo('svc-shared', true));
// Also a read of a lost log is refused.
await Promise.all([...own, ...shared]).catch((error: unknown) => {
  lost ??= errorText(error);
});
await store.close();
say(lost === undefined ? 'done' : `lost ${lost}`);

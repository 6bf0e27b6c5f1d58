/**
 * A process that fights for a log without the folder's lock: it opens the log, appends, and opens it again whenever
 * another process has taken it over. Arguments: data folder, own name, number of appends that must be acknowledged.
 * Lines: `ack <event id> <stream> <revision> <position>` per acknowledged append, `lost <cause>` per lost log, `not opened
 * <cause>` per log that could not be opened, `done`.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../../src/kernel/clock.js';
import { errorText } from '../../../src/kernel/errors.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { openEventStore } from '../../../src/storage/embedded/log/event-store.js';
import { createOwnership } from '../../../src/storage/embedded/ownership.js';
import { lastRevision, type EventStore } from '../../../src/storage/event-store.js';
import { commandOf } from '../contract/appending.js';

const [dataDir = '', name = '', wanted = '0'] = process.argv.slice(2);
let acknowledged = 0;
// Not written synchronously: the pipe may be full.
const say = (line: string): boolean => process.stdout.write(`${line}\n`);

/** Undefined if LMDB cannot open it, as may happen in a process that had these files open before another wrote them. */
function openedLog(): EventStore | undefined {
  try {
    return openEventStore(join(dataDir, 'log'), createOwnership(), systemClock, silentLogger);
  } catch (error) {
    say(`not opened ${errorText(error)}`);
    return undefined;
  }
}

/** Appends in 8 streams of its own and one that both processes use, until it is refused. */
async function fight(): Promise<void> {
  const store = openedLog();
  if (store === undefined) return;
  let lost: string | undefined;
  const appendTo = async (stream: string, shared: boolean): Promise<void> => {
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
  };
  const own = Array.from({ length: 48 }, (_, index) => appendTo(`svc-${name}-${index % 48}`, false));
  await Promise.all([...own, ...Array.from({ length: 16 }, () => appendTo('svc-shared', true))]);
  await store.close();
  if (lost !== undefined) say(`lost ${lost}`);
}

while (acknowledged < Number(wanted)) {
  await fight();
  await delay(10 + Math.random() * 20);
}
say('done');

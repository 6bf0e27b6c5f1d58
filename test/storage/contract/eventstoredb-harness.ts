/** Opens the EventStoreDB adapter for the contract suite, against the test server or a real one. */
import { silentLogger } from '../../../src/kernel/logger.js';
import type { EventStore } from '../../../src/storage/event-store.js';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { createDice } from '../../support/hostile.js';
import type { AppendFault, Faults } from '../../servers/eventstoredb/faults.js';
import { startEventStoreDb } from '../../servers/eventstoredb/server.js';
import type { EventStoreHarness } from './event-store.contract.js';
import { temporaryFolder } from './temporary-folder.js';

/** A harness on the store at a URL. `end` closes the server. */
async function harnessAt(
  url: () => string,
  end: () => Promise<void>,
  kill?: () => Promise<void>,
): Promise<EventStoreHarness> {
  const open = (): EventStore => openEventStoreDb({ url: url(), logger: silentLogger });
  let store = open();
  const reopen = async (): Promise<void> => {
    await store.close();
    store = open();
  };
  return {
    store: () => store,
    reopen,
    ...(kill === undefined ? {} : { kill }),
    async close() {
      await store.close();
      await end();
    },
  };
}

/** The test server on a folder. A kill cuts every connection and starts the server again on the written log. */
export async function testServerHarness(
  misbehave: (faults: Faults) => void = () => undefined,
): Promise<EventStoreHarness> {
  const folder = await temporaryFolder();
  let server = await startEventStoreDb({ folder: folder.path });
  misbehave(server.faults);
  return harnessAt(
    () => server.url,
    async () => {
      await server.close();
      await folder.remove();
    },
    async () => {
      const { port } = server;
      await server.close();
      server = await startEventStoreDb({ folder: folder.path, port });
      misbehave(server.faults);
    },
  );
}

export const realServerHarness = (url: string): Promise<EventStoreHarness> =>
  harnessAt(
    () => url,
    async () => undefined,
  );

/** Frequent faults, all of them seen on real servers. Silence is left to other tests, because it is slow. */
export function hostileServer(seed: number, often = 0.25): (faults: Faults) => void {
  const dice = createDice(seed);
  const kinds: readonly AppendFault[] = [
    { kind: 'deadline' },
    { kind: 'commit_timeout', laterMs: 3 },
    { kind: 'not_ready' },
    { kind: 'no_position' },
    { kind: 'cut', written: true },
    { kind: 'cut', written: false },
    { kind: 'late', ms: 4 },
  ];
  return (faults) => {
    faults.choose = () => (dice.chance(often) ? kinds[dice.below(kinds.length)] : undefined);
    faults.caughtUpRepeats = true;
    faults.dropAfter = 40;
  };
}

/** A client that is discarded during a read: the interrupted read must not look like an empty stream. */
import { BACKWARDS, END } from '@eventstore/db-client';
import { expect, it } from 'vitest';
import { silentLogger } from '../../../src/kernel/logger.js';
import { readAddress } from '../../../src/storage/eventstoredb/address.js';
import { openConnection } from '../../../src/storage/eventstoredb/connection.js';
import { readPage } from '../../../src/storage/eventstoredb/read.js';
import { startEventStoreDb } from '../../servers/eventstoredb/server.js';
import { eventually } from '../../support/eventually.js';

it('fails the reads in flight', async () => {
  const server = await startEventStoreDb();
  const connection = openConnection(readAddress(server.url), 'reads', silentLogger);
  try {
    server.faults.silentReads = true;
    const reading = readPage(connection, ({ client }) =>
      client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1, requiresLeader: true }),
    );
    const outcome = reading.then(
      (events) => ({ kind: 'answered', events }),
      (error: unknown) => ({ kind: 'failed', error }),
    );
    await eventually(() => server.mostCalls()).toBe(1);
    await connection.discard(await connection.lease(), 'another read was not answered');
    expect(await outcome).toMatchObject({ kind: 'failed', error: { code: 'unavailable' } });
  } finally {
    await connection.close();
    await server.close();
  }
});

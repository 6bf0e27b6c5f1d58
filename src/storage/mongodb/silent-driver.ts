/**
 * Notices that the driver has stopped asking after a server, and opens its client anew. Seen once after a server was
 * killed under load: its last error stayed for good, the server came back and was never asked again. The driver asks
 * every `heartbeatMs` and gives each question up after `connectMs`, so a long silence is never an outage. What runs
 * meanwhile fails as `unavailable`.
 */
import type { MongoClient } from 'mongodb';
import { startLoop } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import { tuning } from './tuning.js';

/** Watches a connected client until closed; close it before the client. */
export function reviveSilentClient(client: MongoClient, logger: Logger): { close(): Promise<void> } {
  /** Turns since something was heard of a server, by its address: a process that was held still counts one turn only. */
  const silence = new Map<string, number>();
  const heard = ({ connectionId }: { readonly connectionId: string }): void => void silence.set(connectionId, 0);
  client.on('serverHeartbeatStarted', heard);
  client.on('serverHeartbeatSucceeded', heard);
  client.on('serverHeartbeatFailed', heard);
  client.on('topologyDescriptionChanged', ({ newDescription: { servers } }) => {
    for (const address of silence.keys()) if (!servers.has(address)) silence.delete(address);
    for (const address of servers.keys()) if (!silence.has(address)) silence.set(address, 0);
  });
  return startLoop(
    tuning.heartbeatMs,
    async () => {
      for (const [address, turns] of silence) silence.set(address, turns + 1);
      const silent = [...silence].filter(([, turns]) => turns > tuning.silentHeartbeats);
      if (silent.length === 0) return;
      logger.error(
        { servers: silent.length },
        'the MongoDB driver asks no more after a server; its client is opened anew',
      );
      silence.clear();
      await client.close();
      await client.connect();
    },
    // Calls open the client again too, so there is nothing to repeat here.
    (error) =>
      logger.warn({ error: errorText(error) }, 'the MongoDB client was opened anew, but no server is reached yet'),
  );
}

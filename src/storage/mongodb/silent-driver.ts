/**
 * Notices that the driver has stopped monitoring a server, and opens its client again. Seen once after a server was
 * killed under load: the driver kept the last error and never checked the server again, although it came back. The
 * driver checks every `heartbeatMs` and gives up each check after `connectMs`, so a long silence is never an outage.
 * Calls fail as `unavailable` meanwhile.
 */
import type { MongoClient } from 'mongodb';
import { startLoop } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import { tuning } from './tuning.js';

/**
 * Watches a connected client. Close it before the client.
 * @param patience how long the driver may be silent; tests pass less
 */
export function reviveSilentClient(
  client: MongoClient,
  logger: Logger,
  patience: { readonly heartbeatMs: number; readonly silentHeartbeats: number } = tuning,
): { close(): Promise<void> } {
  /**
   * Turns since the last report about a server, by address. Counts turns, as the process itself may have been frozen.
   */
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
    patience.heartbeatMs,
    async () => {
      for (const [address, turns] of silence) silence.set(address, turns + 1);
      const silent = [...silence].filter(([, turns]) => turns > patience.silentHeartbeats);
      if (silent.length === 0) return;
      logger.error(
        { servers: silent.length },
        'the MongoDB driver has stopped monitoring a server; its client is opened again',
      );
      silence.clear();
      await client.close();
      await client.connect();
    },
    // No retry: calls open the client again too.
    (error) =>
      logger.warn({ error: errorText(error) }, 'the MongoDB client was opened again, but no server can be reached yet'),
  );
}

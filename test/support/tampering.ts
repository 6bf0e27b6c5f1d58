/** Somebody who can write the files of an embedded log but has no master key. Works while no process has the folder. */
import { join } from 'node:path';
import { open } from 'lmdb';
import { eventKey } from '../../src/storage/embedded/log/layout.js';

/**
 * Changes one stored event of a data folder.
 * @param change gets the event's text and returns another, or undefined to delete it
 * @throws Error when there is no such event, or the text stays as it is
 */
export async function tamper(
  dataDir: string,
  stream: string,
  revision: number,
  change: (text: string) => string | undefined,
): Promise<void> {
  const options = { encoding: 'binary', keyEncoding: 'binary' } as const;
  const root = open<Buffer, Buffer>({ path: join(dataDir, 'log'), noSubdir: false, maxDbs: 12, ...options });
  try {
    const streams = root.openDB<Buffer, Buffer>('streams', options);
    const events = root.openDB<string, Buffer>('events', { encoding: 'string', keyEncoding: 'binary' });
    const number = streams.get(Buffer.from(stream))?.readUInt32BE(0);
    const key = eventKey(number ?? 0, revision);
    const text = events.get(key);
    if (text === undefined) throw new Error(`${stream} has no revision ${revision}`);
    const changed = change(text);
    if (changed === text) throw new Error(`${stream}@${revision} was not changed: ${text}`);
    await (changed === undefined ? events.remove(key) : events.put(key, changed));
  } finally {
    await root.close();
  }
}

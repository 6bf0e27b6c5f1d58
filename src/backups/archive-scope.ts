/** What an archive of an installation holds, and how its events are checked. */
import { retentions } from '../commands/facts.js';
import { readEvent } from '../domain/log/upcast.js';
import { allStreams, type RecordedEvent } from '../kernel/event.js';
import type { ArchiveScope } from '../storage/log-archive/export-log.js';
import type { LogCheckOptions } from '../storage/log-archive/log-check.js';

/** The streams that move with an installation. The read store does not: it refills by itself. */
export const archiveScope: ArchiveScope = { streams: allStreams, retentions };

const expiring: ReadonlySet<string> = new Set(retentions.map(({ stream }) => stream));

export const logCheck: LogCheckOptions = {
  expires: (stream) => expiring.has(stream),
  unreadable(event: RecordedEvent) {
    try {
      readEvent(event);
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  },
};

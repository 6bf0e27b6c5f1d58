/**
 * Keeps what was learned about the target's records after a handshake, for each server name and offer of protocols: asks when
 * first needed, again after a failure, and now and then, since a target may change.
 */
import { startLoop, timedOut, withDeadline } from '../../../kernel/background.js';
import type { Clock } from '../../../kernel/clock.js';
import { probeTarget } from './probe.js';
import type { OfferedProtocols } from './probe.js';
import type { RealitySettings } from './settings.js';
import type { Target } from './target.js';
import { tuning } from './tuning.js';

export interface AfterHandshake {
  /** Lengths of records. Waits for the first probe of a pair a few seconds at most; without one, there are none. */
  lengths(serverName: string, offered: OfferedProtocols): Promise<readonly number[]>;
  close(): Promise<void>;
}

interface Known {
  lengths: readonly number[] | undefined;
  /** Monotonic milliseconds: when to ask again. */
  dueAt: number;
  asking: Promise<void> | undefined;
}

const offered: readonly OfferedProtocols[] = ['none', 'http/1.1', 'h2'];

/** @param watchMs how long the target is watched after a handshake */
export function learnAfterHandshake(
  settings: Pick<RealitySettings, 'serverNames'>,
  target: Target,
  clock: Clock,
  watchMs: number,
): AfterHandshake {
  const stop = new AbortController();
  const known = new Map<string, Known>();
  const keyOf = (serverName: string, protocols: OfferedProtocols): string => `${serverName} ${protocols}`;

  const ask = async (entry: Known, serverName: string, protocols: OfferedProtocols): Promise<void> => {
    const lengths = await probeTarget(target, serverName, protocols, watchMs, stop.signal);
    if (lengths !== undefined) entry.lengths = lengths;
    entry.dueAt = clock.monotonic() + (lengths === undefined ? tuning.probeRetryMs : tuning.probeAgainMs);
    entry.asking = undefined;
  };
  const askIfDue = (serverName: string, protocols: OfferedProtocols): Known => {
    const key = keyOf(serverName, protocols);
    const entry = known.get(key) ?? { lengths: undefined, dueAt: 0, asking: undefined };
    known.set(key, entry);
    const due = entry.dueAt <= clock.monotonic();
    if (due && entry.asking === undefined && !stop.signal.aborted) entry.asking = ask(entry, serverName, protocols);
    return entry;
  };
  const askAll = (): void => {
    for (const serverName of settings.serverNames) for (const protocols of offered) askIfDue(serverName, protocols);
  };
  askAll();
  const loop = startLoop(
    tuning.probeRetryMs,
    async () => askAll(),
    () => undefined,
  );

  return {
    async lengths(serverName, protocols) {
      const entry = askIfDue(serverName, protocols);
      if (entry.lengths === undefined && entry.asking !== undefined) {
        const waited = await withDeadline(entry.asking, watchMs + tuning.probeWaitMs);
        if (waited === timedOut) return [];
      }
      return entry.lengths ?? [];
    },
    async close() {
      stop.abort();
      await loop.close();
      await Promise.all([...known.values()].map(({ asking }) => asking));
    },
  };
}

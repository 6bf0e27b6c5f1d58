/**
 * Keeps what was learned about the target's records after a handshake, for each server name, offer of protocols and hash
 * of the suite: asks when first needed, again after a failure, and now and then, since a target may change.
 */
import { setMaxListeners } from 'node:events';
import { startLoop, withDeadline } from '../../../kernel/background.js';
import type { Clock } from '../../../kernel/clock.js';
import { probeTarget } from './probe.js';
import type { Suite } from '../../../channel/tls/suites.js';
import type { OfferedProtocols, Probed } from './probe.js';
import type { RealityServer } from './settings.js';
import type { Target } from './target.js';
import { tuning } from './tuning.js';

export interface AfterHandshake {
  /**
   * Lengths of records. Waits for the first probe a few seconds at most; without one, there are none.
   * @param hash of the suite that the target has chosen on this connection
   */
  lengths(serverName: string, offered: OfferedProtocols, hash: Suite['hash']): Promise<readonly number[]>;
  close(): Promise<void>;
}

interface Known {
  probed: Probed | undefined;
  /** Monotonic milliseconds: when to ask again. */
  dueAt: number;
  asking: Promise<void> | undefined;
}

interface Question {
  readonly serverName: string;
  readonly protocols: OfferedProtocols;
  /** Undefined for what the target chooses from all suites. */
  readonly hash?: Suite['hash'];
}

/** What most visits have found, of equally many the first. */
function commonest(found: readonly Probed[]): Probed | undefined {
  const texts = found.map((one) => JSON.stringify(one));
  const times = (text: string | undefined): number => texts.filter((other) => other === text).length;
  const most = Math.max(...texts.map(times));
  return found.find((_, index) => times(texts[index]) === most);
}

const offered: readonly OfferedProtocols[] = ['none', 'http/1.1', 'h2'];

/** @param watchMs how long the target is watched after a handshake */
export function learnAfterHandshake(
  settings: Pick<RealityServer, 'serverNames'>,
  target: Target,
  clock: Clock,
  watchMs: number,
): AfterHandshake {
  const stop = new AbortController();
  // Each visit listens to it.
  setMaxListeners(0, stop.signal);
  const known = new Map<string, Known>();

  const ask = async (entry: Known, { serverName, protocols, hash }: Question): Promise<void> => {
    const visits = Array.from({ length: tuning.probes }, () =>
      probeTarget(target, serverName, protocols, hash, watchMs, stop.signal),
    );
    const probed = commonest((await Promise.all(visits)).filter((visit) => visit !== undefined));
    if (probed !== undefined) entry.probed = probed;
    entry.dueAt = clock.monotonic() + (probed === undefined ? tuning.probeRetryMs : tuning.probeAgainMs);
    entry.asking = undefined;
  };
  const askIfDue = (question: Question): Known => {
    const key = `${question.serverName} ${question.protocols} ${question.hash ?? 'any'}`;
    const entry = known.get(key) ?? { probed: undefined, dueAt: 0, asking: undefined };
    known.set(key, entry);
    const due = entry.dueAt <= clock.monotonic();
    if (due && entry.asking === undefined && !stop.signal.aborted) entry.asking = ask(entry, question);
    return entry;
  };
  /** What is known, or is about to be. */
  const answerTo = async (question: Question): Promise<Probed | undefined> => {
    const entry = askIfDue(question);
    if (entry.probed === undefined && entry.asking !== undefined) {
      await withDeadline(entry.asking, watchMs + tuning.probeWaitMs);
    }
    return entry.probed;
  };
  const askAll = (): void => {
    for (const serverName of settings.serverNames) for (const protocols of offered) askIfDue({ serverName, protocols });
  };
  askAll();
  const loop = startLoop(
    tuning.probeRetryMs,
    async () => askAll(),
    () => undefined,
  );

  return {
    async lengths(serverName, protocols, hash) {
      const first = await answerTo({ serverName, protocols });
      if (first === undefined || first.hash === hash) return first?.lengths ?? [];
      // The target chooses otherwise on what this client offers.
      return (await answerTo({ serverName, protocols, hash }))?.lengths ?? [];
    },
    async close() {
      stop.abort();
      await loop.close();
      await Promise.all([...known.values()].map(({ asking }) => asking));
    },
  };
}

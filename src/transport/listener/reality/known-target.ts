/**
 * What is known about a target, whoever asks: for each server name, whether it can be reached and imitated; and for
 * each protocol offer and suite hash, what it sends after a handshake. It is probed at once, again a minute after a
 * failure or soon after a client has met one, and from time to time, since a target may change. Implements
 * `docs/reality.md#records-after-the-handshake` and the states in
 * `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { setMaxListeners } from 'node:events';
import { startLoop, withDeadline } from '../../../kernel/background.js';
import type { Clock } from '../../../kernel/clock.js';
import { probeTarget, type OfferedProtocols, type Probed, type TargetTrouble } from './probe.js';
import type { Suite } from '../../../channel/tls/suites.js';
import type { Target } from './target.js';
import { tuning } from './tuning.js';

export interface KnownTarget {
  /**
   * Lengths of records. Waits at most a few seconds for the first probe; without one, there are none.
   * @param hash of the suite that the target has chosen on this connection
   */
  lengths(serverName: string, offered: OfferedProtocols, hash: Suite['hash']): Promise<readonly number[]>;
  /** Replaces the server names that are probed. */
  keep(serverNames: readonly string[]): void;
  /** Whether it has answered for each of these names. */
  knows(serverNames: readonly string[]): boolean;
  /** Resolves when all probes known to be needed so far are done; after a few seconds at most. */
  settled(): Promise<void>;
  /** Why no client can be served under this name; undefined also while that is not known. */
  trouble(serverName: string): TargetTrouble | undefined;
  /** Records that the target has just served a client's hello. */
  served(serverName: string): void;
  /** Records that a client has met a target that could not be reached or imitated; it is then probed soon. */
  failed(): void;
  /** Stops probing. What is known stays known. */
  close(): Promise<void>;
}

interface KnownTargetOptions {
  readonly target: Target;
  readonly serverNames: readonly string[];
  readonly clock: Clock;
  /** How long the target is watched after a handshake. */
  readonly watchMs: number;
  /** Called when the trouble with a name starts, changes or ends; must not throw. */
  readonly changed?: (serverName: string, trouble: TargetTrouble | undefined) => void;
}

interface Question {
  readonly serverName: string;
  readonly protocols: OfferedProtocols;
  /** Undefined: the target chooses from all suites. */
  readonly hash?: Suite['hash'];
}

interface Known {
  readonly question: Question;
  probed: Probed | undefined;
  trouble: TargetTrouble | undefined;
  /** Monotonic milliseconds. */
  askedAt: number;
  /** When to probe again. */
  dueAt: number;
  asking: Promise<void> | undefined;
}

/** What most visits found; on a tie, the first. */
function commonest(found: readonly Probed[]): Probed | undefined {
  const texts = found.map((one) => JSON.stringify(one));
  const times = (text: string | undefined): number => texts.filter((other) => other === text).length;
  const most = Math.max(...texts.map(times));
  return found.find((_, index) => times(texts[index]) === most);
}

const unprobed = (question: Question, now: number): Known => ({
  question,
  probed: undefined,
  trouble: undefined,
  askedAt: now,
  dueAt: 0,
  asking: undefined,
});

const offered: readonly OfferedProtocols[] = ['none', 'http/1.1', 'h2'];

const keyOf = ({ serverName, protocols, hash }: Question): string => `${serverName} ${protocols} ${hash ?? 'any'}`;

/** What is wrong with the target, by the name that clients ask for. @param changed called when that has changed */
function createTroubles(
  known: ReadonlyMap<string, Known>,
  changed: (serverName: string, now: TargetTrouble | undefined) => void,
) {
  const entriesOf = (serverName: string): readonly (Known | undefined)[] =>
    offered.map((protocols) => known.get(keyOf({ serverName, protocols })));

  /** Offers differ in what follows a handshake; as long as one of them is answered, clients are served. */
  const trouble = (serverName: string): TargetTrouble | undefined => {
    const each = entriesOf(serverName).map((entry) => entry?.trouble);
    if (each.includes(undefined)) return undefined;
    return each.includes('unreachable') ? 'unreachable' : 'unusable';
  };
  const note = (
    serverName: string,
    entries: readonly (Known | undefined)[],
    found: TargetTrouble | undefined,
  ): void => {
    const before = trouble(serverName);
    for (const entry of entries) if (entry !== undefined) entry.trouble = found;
    const now = trouble(serverName);
    if (now !== before) changed(serverName, now);
  };
  return { entriesOf, trouble, note };
}

export function createKnownTarget(options: KnownTargetOptions): KnownTarget {
  const { target, clock, watchMs, changed = () => undefined } = options;
  const stop = new AbortController();
  // Each visit listens to it.
  setMaxListeners(0, stop.signal);
  const known = new Map<string, Known>();
  let names = options.serverNames;
  let failedAt = Number.NEGATIVE_INFINITY;
  const { entriesOf, trouble, note } = createTroubles(known, (serverName, now) => {
    if (!stop.signal.aborted) changed(serverName, now);
  });

  const ask = async (entry: Known): Promise<void> => {
    const { serverName, protocols, hash } = entry.question;
    // Only when all suites are offered does a target show its own preference.
    const tell = (found: TargetTrouble | undefined): void => {
      if (hash === undefined) note(serverName, [entry], found);
    };
    const visits = Array.from({ length: tuning.probes }, () =>
      probeTarget(target, { serverName, protocols, hash, watchMs, signal: stop.signal }, () => tell(undefined)),
    );
    const outcomes = await Promise.all(visits);
    const found = outcomes.filter((one) => typeof one === 'object');
    const [first = 'unusable'] = outcomes.filter((one) => typeof one === 'string');
    if (found.length === 0 && !stop.signal.aborted) tell(first);
    entry.probed = commonest(found) ?? entry.probed;
    const againMs = found.length === 0 ? tuning.probeRetryMs : tuning.probeAgainMs;
    entry.dueAt = Math.min(entry.dueAt, entry.askedAt + againMs);
    entry.asking = undefined;
  };
  const askIfDue = (question: Question): Known => {
    const key = keyOf(question);
    const now = clock.monotonic();
    const entry = known.get(key) ?? unprobed(question, now);
    known.set(key, entry);
    if (entry.dueAt <= now && entry.asking === undefined && !stop.signal.aborted) {
      entry.askedAt = now;
      entry.dueAt = Number.POSITIVE_INFINITY;
      entry.asking = ask(entry);
    }
    return entry;
  };
  const askSoon = (entry: Known): void => {
    entry.dueAt = Math.min(entry.dueAt, entry.askedAt + tuning.probeSoonMs);
  };
  /** The answer that is known, or soon will be. */
  const answerTo = async (question: Question): Promise<Probed | undefined> => {
    const entry = askIfDue(question);
    if (entry.probed === undefined && entry.asking !== undefined) {
      await withDeadline(entry.asking, watchMs + tuning.probeWaitMs);
    }
    if (entry.probed === undefined) askSoon(entry);
    return entry.probed;
  };
  const askAll = (): void => {
    for (const serverName of names) for (const protocols of offered) askIfDue({ serverName, protocols });
  };
  askAll();
  const loop = startLoop(
    tuning.probeSoonMs,
    async () => askAll(),
    () => undefined,
  );

  return {
    async lengths(serverName, protocols, hash) {
      const first = await answerTo({ serverName, protocols });
      if (first === undefined || first.hash === hash) return first?.lengths ?? [];
      // The target chooses a different hash for this client's offer.
      return (await answerTo({ serverName, protocols, hash }))?.lengths ?? [];
    },
    keep(serverNames) {
      names = serverNames;
      const kept = new Set(names);
      for (const [key, { question }] of known) if (!kept.has(question.serverName)) known.delete(key);
      askAll();
    },
    knows: (serverNames) => serverNames.every((name) => entriesOf(name).every((entry) => entry?.probed !== undefined)),
    async settled() {
      const asking = Array.from(known.values(), (entry) => entry.asking);
      await withDeadline(Promise.all(asking), watchMs + tuning.probeWaitMs);
    },
    trouble,
    served(serverName) {
      if (trouble(serverName) !== undefined) note(serverName, entriesOf(serverName), undefined);
    },
    failed() {
      const now = clock.monotonic();
      if (now - failedAt < tuning.probeFailedMs) return;
      failedAt = now;
      for (const entry of known.values()) if (entry.question.hash === undefined) askSoon(entry);
      askAll();
    },
    async close() {
      stop.abort();
      await loop.close();
      await Promise.all([...known.values()].map(({ asking }) => asking));
    },
  };
}

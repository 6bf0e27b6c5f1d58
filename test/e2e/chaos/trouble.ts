/**
 * The trouble-maker: kills instances and stores, holds stores still and starts everything again, loses answers of
 * appends, at random times, each on a time-table of its own, so that troubles meet. Leaves everything running when it is
 * stopped.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ServiceProcess } from '../../../scripts/stack/service.js';
import type { AppendFault } from '../../servers/eventstoredb/faults.js';
import type { Random } from './random.js';

/** A store as a process that can be hurt. */
export interface Store {
  kill(): Promise<void>;
  restart(): Promise<void>;
  freeze(): void;
  thaw(): void;
}

/** What may become of one append: written or not, the answer does not tell. */
const appendFaults: readonly AppendFault[] = [
  { kind: 'answer_lost' },
  { kind: 'cut', written: true },
  { kind: 'cut', written: true },
  { kind: 'cut', written: false },
  { kind: 'commit_timeout', laterMs: 700 },
  { kind: 'no_position' },
  { kind: 'not_ready' },
];

export interface Trouble {
  /** What was done and when, for whoever looks for the cause of a failure. */
  readonly history: readonly string[];
  /** Ends the trouble; resolves when both stores run and both instances are ready. */
  stop(): Promise<void>;
  /** Both stores away at once, with the instances left alone. */
  lastOutage(): Promise<void>;
}

export interface TroubleOptions {
  readonly services: readonly ServiceProcess[];
  readonly eventStore: Store & { failAppends(faults: readonly AppendFault[]): void };
  readonly readStore: Store;
  readonly random: Random;
  readonly onFault: (fault: string) => void;
  /** The log of an instance that is about to be killed. */
  readonly onEnd: (instance: number, output: string) => void;
}

export function startTrouble(options: TroubleOptions): Trouble {
  const { services, eventStore, readStore, random, onFault, onEnd } = options;
  const began = performance.now();
  const history: string[] = [];
  const note = (what: string): void => {
    history.push(`${((performance.now() - began) / 1000).toFixed(1)} s: ${what}`);
  };
  const stopping = new AbortController();
  const { signal } = stopping;
  const pause = (ms: number): Promise<void> => delay(ms, undefined, { signal }).catch(() => undefined);

  async function hurtInstance(service: ServiceProcess, index: number, mine: Random): Promise<void> {
    await pause(mine.between(4_000, 12_000));
    if (signal.aborted) return;
    if (service.program().exited()) {
      onFault(`instance ${index} ended by itself:\n${service.program().output().slice(-3_000)}`);
    }
    note(`instance ${index} killed`);
    onEnd(index, service.program().output());
    await service.kill();
    await pause(mine.between(0, 2_000));
    try {
      await service.start();
      note(`instance ${index} ready`);
    } catch (error) {
      onFault(`instance ${index} did not start: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async function hurtStore(store: Store, name: string, mine: Random): Promise<void> {
    await pause(mine.between(3_000, 9_000));
    if (signal.aborted) return;
    if (mine.chance(0.5)) {
      note(`${name} killed`);
      await store.kill();
      await pause(mine.between(0, 2_500));
      await store.restart();
      note(`${name} started`);
      return;
    }
    note(`${name} held still`);
    store.freeze();
    await pause(mine.between(300, 6_000));
    store.thaw();
    note(`${name} goes on`);
  }

  async function hurtAppend(mine: Random): Promise<void> {
    await pause(mine.between(300, 2_000));
    if (signal.aborted) return;
    // Some of them meet the facts of agents, which are appended more often than commands.
    const faults = Array.from({ length: 1 + mine.below(4) }, () => mine.pick(appendFaults)).filter(
      (one) => one !== undefined,
    );
    note(`appends: ${faults.map(({ kind }) => kind).join(', ')}`);
    eventStore.failAppends(faults);
  }

  const until = async (hurt: () => Promise<void>): Promise<void> => {
    while (!signal.aborted) await hurt();
  };
  const ofAppends = random.fork('appends');
  const running = [
    until(() => hurtAppend(ofAppends)),
    ...services.map((service, index) => {
      const mine = random.fork(`instance ${index}`);
      return until(() => hurtInstance(service, index, mine));
    }),
    ...(
      [
        ['event store', eventStore],
        ['read store', readStore],
      ] as const
    ).map(([name, store]) => {
      const mine = random.fork(name);
      return until(() => hurtStore(store, name, mine));
    }),
  ];

  return {
    history,
    async stop() {
      stopping.abort();
      await Promise.all(running);
    },
    async lastOutage() {
      note('both stores are away');
      readStore.freeze();
      await eventStore.kill();
      await delay(random.between(1_000, 3_000));
      await eventStore.restart();
      readStore.thaw();
      note('both stores are back');
    },
  };
}

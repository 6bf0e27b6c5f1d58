/**
 * Causes faults at random times: kills and restarts instances and stores, freezes stores, loses answers of appends. Each
 * kind has its own schedule, so that faults overlap. When it is stopped, everything runs again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ServiceProcess } from '../../../scripts/stack/service.js';
import type { AppendFault } from '../../servers/eventstoredb/faults.js';
import type { Random } from './random.js';

/** A store as a process. */
export interface Store {
  kill(): Promise<void>;
  restart(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): void;
}

/** Faults of one append, after which the service does not know whether it was written. */
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
  /** What was done when, to explain a failure. */
  readonly history: readonly string[];
  /** Stops causing faults; resolves when both stores run and both instances are ready. */
  stop(): Promise<void>;
  /** Takes both stores away at once and leaves the instances running. */
  lastOutage(): Promise<void>;
}

export interface TroubleOptions {
  readonly services: readonly ServiceProcess[];
  readonly eventStore: Store & { failAppends(faults: readonly AppendFault[]): void };
  readonly readStore: Store;
  readonly random: Random;
  readonly onFault: (fault: string) => void;
  /** Gets the output of an instance that is about to be killed. */
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

  async function hurtInstance(service: ServiceProcess, index: number, rng: Random): Promise<void> {
    await pause(rng.between(4_000, 12_000));
    if (signal.aborted) return;
    if (service.program().exited()) {
      onFault(`instance ${index} exited by itself:\n${service.program().output().slice(-3_000)}`);
    }
    note(`instance ${index} killed`);
    onEnd(index, service.program().output());
    await service.kill();
    await pause(rng.between(0, 2_000));
    try {
      await service.start();
      note(`instance ${index} ready`);
    } catch (error) {
      onFault(`instance ${index} did not start: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async function hurtStore(store: Store, name: string, rng: Random): Promise<void> {
    await pause(rng.between(3_000, 9_000));
    if (signal.aborted) return;
    if (rng.chance(0.5)) {
      note(`${name} killed`);
      await store.kill();
      await pause(rng.between(0, 2_500));
      await store.restart();
      note(`${name} started`);
      return;
    }
    note(`${name} frozen`);
    await store.freeze();
    await pause(rng.between(300, 6_000));
    store.thaw();
    note(`${name} thawed`);
  }

  async function hurtAppend(rng: Random): Promise<void> {
    await pause(rng.between(300, 2_000));
    if (signal.aborted) return;
    // Several, because facts of agents are appended more often than commands and take some of them.
    const faults = Array.from({ length: 1 + rng.below(4) }, () => rng.pick(appendFaults)).filter(
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
      const rng = random.fork(`instance ${index}`);
      return until(() => hurtInstance(service, index, rng));
    }),
    ...(
      [
        ['event store', eventStore],
        ['read store', readStore],
      ] as const
    ).map(([name, store]) => {
      const rng = random.fork(name);
      return until(() => hurtStore(store, name, rng));
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
      await readStore.freeze();
      await eventStore.kill();
      await delay(random.between(1_000, 3_000));
      await eventStore.restart();
      readStore.thaw();
      note('both stores are back');
    },
  };
}

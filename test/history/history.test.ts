/** How the log is read again for an earlier configuration: from where, how far, and what is checked on the way. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { saveFleet } from '../../src/projections/fleet/fold-checkpoint.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import { createHistory, type History, type HistoryOptions } from '../../src/projections/history/history.js';
import { lastEvent, streams, type RecordedEvent } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { LogChain } from '../../src/security/log-chain/log-chain.js';
import { ownEvent } from '../../src/storage/broken-log.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { createCommandAssembler } from '../../src/storage/follow.js';
import { createCommandFixture, type CommandFixture } from '../support/command-fixture.js';
import * as f from '../support/fleet.js';
import { testLogChain } from '../support/log-chain.js';
import { projectRoot } from '../support/project-root.js';
import { storesInMemory } from '../support/stores-in-memory.js';

const entry = pathToFileURL(join(projectRoot, 'dist/test-programs/src/projections/history/worker.js'));
let fixture: CommandFixture;
let logChain: LogChain;
const opened: History[] = [];
const open = (options: Pick<HistoryOptions, 'eventStore' | 'logChain'>): History => {
  const history = createHistory({ logger: silentLogger, entry, ...options });
  opened.push(history);
  return history;
};
/** Generations of the node a, which every refresh touches. */
const generations: number[] = [];
const a = f.nodeId('a');
const refreshes = 12;

beforeAll(async () => {
  fixture = await createCommandFixture(storesInMemory());
  ({ logChain } = fixture.options);
  const gateway = await fixture.gateway();
  await gateway.run(f.createNode('a'));
  generations.push(gateway.fleet.generationOf(a) ?? 0);
  for (let step = 0; step < refreshes; step += 1) {
    await gateway.run({ type: 'RefreshNodeConfig', id: a });
    generations.push(gateway.fleet.generationOf(a) ?? 0);
  }
});
afterEach(() => Promise.all(opened.splice(0).map((history) => history.close())));
afterAll(() => fixture.close());

interface Looking {
  readonly found: (generation: number) => Promise<number | undefined>;
  /** First revision and count of each read of events. */
  readonly reads: (readonly [number, number])[];
}

function look(chain = testLogChain(), change: (event: RecordedEvent) => RecordedEvent = (event) => event): Looking {
  const reads: (readonly [number, number])[] = [];
  const { eventStore } = fixture.stores;
  const store: EventStore = {
    ...eventStore,
    async *read(stream, options) {
      if (stream === streams.fleet && options.maxCount > 1) reads.push([Number(options.from), options.maxCount]);
      for await (const event of eventStore.read(stream, options)) yield change(ownEvent(event));
    },
  };
  const { compileEarlier } = open({ eventStore: store, logChain: chain });
  return {
    reads,
    found: async (generation) => (await compileEarlier(a, generation))?.generation,
  };
}

it('reads only what can be part of the generation', async () => {
  const { found, reads } = look();
  const [first = 0, second = 0] = generations;
  expect(await found(0)).toBeUndefined();
  expect(reads).toEqual([]);
  expect(await found(second)).toBe(second);
  expect(reads).toEqual([[0, second]]);
  expect(await found(first - 1)).toBeUndefined();
});

describe('a checkpoint', () => {
  const at = 8;
  beforeAll(async () => {
    const fold = emptyFleet();
    for (const command of createCommandAssembler().add(await fixture.log())) {
      if (lastEvent(command).revision >= (generations[at] ?? 0)) break;
      fold.logChain.set(logChain.follow(fold.logChain.value, command));
      applyCommand(fold, command);
    }
    await saveFleet(fixture.stores.eventStore, logChain, fold, new AbortController().signal);
  });

  it('saves reading what is before it', async () => {
    const { found, reads } = look();
    expect(await found(generations[10] ?? 0)).toBe(generations[10]);
    expect(reads.map(([from]) => from)).toEqual([generations[at]]);
  });

  it('is not used for a generation before it', async () => {
    const { found, reads } = look();
    expect(await found(generations[at - 1] ?? 0)).toBe(generations[at - 1]);
    expect(reads.map(([from]) => from)).toEqual([0]);
  });

  it('is not used when another key has sealed it', async () => {
    const { found, reads } = look(testLogChain(9));
    // Nor is any command of the log.
    await expect(found(generations[10] ?? 0)).rejects.toMatchObject({ code: 'unavailable' });
    expect(reads.map(([from]) => from)).toEqual([0]);
  });
});

describe('what is read', () => {
  it('is checked against the log chain: a changed event is not folded, and the instance knows of it', async () => {
    const chain = testLogChain();
    const { found } = look(chain, (event) =>
      event.type === 'NodeCreated' ? { ...event, data: { ...event.data, name: 'forged' } } : event,
    );
    await expect(found(generations[3] ?? 0)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('the log chain of svc-fleet breaks at revision'),
    });
    expect(chain.broken()).toMatchObject({ kind: 'altered', stream: streams.fleet });
    expect(await look().found(generations[3] ?? 0)).toBe(generations[3]);
  });

  it('fails the request when events are missing, and that one alone', async () => {
    const { eventStore } = fixture.stores;
    const gap: EventStore = {
      ...eventStore,
      async *read(stream, options) {
        for await (const event of eventStore.read(stream, options)) if (event.revision !== 2) yield event;
      },
    };
    const { compileEarlier } = open({ eventStore: gap, logChain });
    await expect(compileEarlier(a, generations[4] ?? 0)).rejects.toThrow('continues at 3 instead of 2');
    expect(await look().found(generations[4] ?? 0)).toBe(generations[4]);
  });
});

/** Fan-outs: slices with turns of the event loop between them; no node starves, and none delays another. */
import { describe, expect, it, vi } from 'vitest';
import { createFanOut } from '../../src/delivery/fan-out.js';
import { createDeliveryFixture, openSession, until } from '../support/delivery-fixture.js';
import { tuning } from '../../src/delivery/tuning.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a fan-out', () => {
  it('gives the event loop a turn after every slice of 2,000 nodes', async () => {
    const fixture = await createDeliveryFixture();
    try {
      const count = 2000;
      for (let from = 0; from < count; from += 100) {
        await fixture.log.append(
          Array.from({ length: 100 }, (_, index) => ({
            type: 'NodeCreated',
            data: {
              node_id: `n${from + index}`,
              name: `n${from + index}`,
              description: null,
              address: null,
              labels: {},
            },
          })),
        );
      }
      const delivery = await fixture.start();
      const sessions = Array.from({ length: count }, (_, index) => openSession(delivery, `n${index}`));
      await Promise.all(sessions.map((session) => session.ask()));
      await turn();
      /** Offers made between two turns of the event loop. */
      const perTurn: number[] = [];
      let before = delivery.stats().offered;
      await fixture.log.run({ type: 'UpdateConnectivity', ifMatch: undefined, multiplex: true, multiplex_port: 9443 });
      while (delivery.stats().offered < count) {
        await turn();
        perTurn.push(delivery.stats().offered - before);
        before = delivery.stats().offered;
      }
      expect(sessions.every(({ offers }) => offers.length === 1)).toBe(true);
      expect(Math.max(...perTurn)).toBeLessThanOrEqual(tuning.sliceNodes);
      expect(perTurn.filter((offers) => offers > 0).length).toBeGreaterThanOrEqual(count / tuning.sliceNodes);
    } finally {
      await fixture.close();
    }
  }, 60_000);

  const deps = {
    mayPush: () => true,
    hasSession: () => true,
    onError: () => undefined,
  };

  it('serves a few nodes in the turn of their change, once each, and many in later turns', async () => {
    const served: string[] = [];
    const serve = (nodeId: string): number => {
      served.push(nodeId);
      return 0;
    };
    const fanOut = createFanOut({ ...deps, serve });
    let turned = false;
    setImmediate(() => (turned = true));
    fanOut.touch(['a', 'b']);
    fanOut.touch(['a']);
    expect(served).toEqual([]);
    for (let microtask = 0; microtask < 10; microtask += 1) await Promise.resolve();
    expect([served, turned]).toEqual([['a', 'b'], false]);
    const many = Array.from({ length: tuning.atOnceNodes + 1 }, (_, index) => `n${index}`);
    fanOut.touch(many);
    for (let microtask = 0; microtask < 10; microtask += 1) await Promise.resolve();
    expect(served).toEqual(['a', 'b']);
    await until(() => fanOut.waiting === 0);
    expect(served).toEqual(['a', 'b', ...many]);
    await fanOut.close();
  });

  it('serves a node again that changes while it is served', async () => {
    let served = 0;
    const fanOut = createFanOut({
      ...deps,
      serve: async (nodeId) => {
        served += 1;
        await turn();
        if (served === 1) fanOut.touch([nodeId]);
        await turn();
        return 0;
      },
    });
    fanOut.touch(['node']);
    await until(() => served === 2 && fanOut.waiting === 0);
    await fanOut.close();
  });

  // How many microtasks there are between the last look at the set and the end of the run is up to the engine.
  it.each(Array.from({ length: 12 }, (_, index) => index))(
    'serves a node that changes as a run ends, %i microtasks after the last one was served',
    async (microtasks) => {
      const served: string[] = [];
      const late = async (): Promise<void> => {
        for (let passed = 0; passed < microtasks; passed += 1) await Promise.resolve();
        fanOut.touch(['late']);
      };
      const fanOut = createFanOut({
        ...deps,
        serve: (nodeId) => {
          served.push(nodeId);
          if (nodeId === 'first') void late();
          return Promise.resolve(0);
        },
      });
      fanOut.touch(['first']);
      await until(() => served.includes('late'));
      await fanOut.close();
    },
  );

  it('is not delayed by edits that never stop', async () => {
    const served: string[] = [];
    const fanOut = createFanOut({
      ...deps,
      serve: async (nodeId) => {
        served.push(nodeId);
        return 0;
      },
    });
    // A change in every turn of the event loop: a debouncer without a maximum would never fire.
    for (let round = 0; round < 50; round += 1) {
      fanOut.touch(['busy']);
      await turn();
    }
    expect(served.length).toBeGreaterThan(10);
    await fanOut.close();
  });

  it('serves a node once, in its place, when it changes again while it waits', async () => {
    const served: string[] = [];
    const fanOut = createFanOut({
      ...deps,
      serve: async (nodeId) => {
        served.push(nodeId);
        return 0;
      },
    });
    fanOut.touch(['a', 'b']);
    fanOut.touch(['a', 'c', 'b']);
    await until(() => fanOut.waiting === 0 && served.length >= 3);
    expect(served).toEqual(['a', 'b', 'c']);
    await fanOut.close();
  });

  it('serves the other nodes first when one cannot be served, and tries that one again', async () => {
    const served: string[] = [];
    let failures = 1;
    const fanOut = createFanOut({
      ...deps,
      serve: async (nodeId) => {
        if (nodeId === 'bad' && failures-- > 0) throw new Error('not now');
        served.push(nodeId);
        return 0;
      },
    });
    fanOut.touch(['bad', 'good']);
    await until(() => served.length === 2);
    expect(served).toEqual(['good', 'bad']);
    await fanOut.close();
  });

  it('waits longer from failure to failure, and begins anew once everything was served', async () => {
    const waits: number[] = [];
    const timer = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, ms: number) => {
      waits.push(ms);
      return setImmediate(run);
    }) as never);
    try {
      let failures = 5;
      let served = 0;
      const serve = async (): Promise<number> => {
        if (failures-- > 0) throw new Error('not now');
        served += 1;
        return 0;
      };
      const fanOut = createFanOut({ ...deps, serve });
      fanOut.touch(['a']);
      for (let turns = 0; served === 0 && turns < 1_000; turns += 1) await turn();
      expect(waits).toHaveLength(5);
      expect(waits[4]).toBeGreaterThan(2 * waits[0]!);
      failures = 1;
      fanOut.touch(['a']);
      for (let turns = 0; served === 1 && turns < 1_000; turns += 1) await turn();
      expect([served, waits.length]).toEqual([2, 6]);
      expect(waits[5]).toBeLessThanOrEqual(waits[1]!);
      await fanOut.close();
    } finally {
      timer.mockRestore();
    }
  });

  it('waits while nothing may be pushed, and serves every changed node afterwards', async () => {
    const served: string[] = [];
    let open = false;
    const fanOut = createFanOut({
      ...deps,
      mayPush: () => open,
      serve: async (nodeId) => {
        served.push(nodeId);
        return 0;
      },
    });
    fanOut.touch(['a', 'b']);
    await turn();
    await turn();
    expect(served).toEqual([]);
    open = true;
    fanOut.wake();
    await until(() => served.length === 2);
    await fanOut.close();
  });

  it('gives the event loop a turn after many bytes too', async () => {
    const served: string[] = [];
    const fanOut = createFanOut({
      ...deps,
      serve: async (nodeId) => {
        served.push(nodeId);
        return tuning.sliceBytes;
      },
    });
    fanOut.touch(['a', 'b', 'c']);
    await turn();
    await turn();
    expect(served.length).toBeLessThan(3);
    await until(() => served.length === 3);
    await fanOut.close();
  });
});

/** Fan-outs: slices with turns of the event loop between them; no node starves, and none delays another. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { sliceNodes, createFanOut, sliceBytes, type FanOutDeps } from '../../src/delivery/fan-out.js';
import { until } from '../support/delivery-fixture.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
/** Lets time pass for timers that are set from now on, in milliseconds. */
const pass = async (ms: number): Promise<void> => {
  await vi.advanceTimersByTimeAsync(ms);
  await turn();
};
const waitsOf = (tries: readonly number[]): readonly number[] => tries.slice(1).map((at, index) => at - tries[index]!);
const names = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `n${index}`);

describe('a fan-out', () => {
  const deps = {
    mayPush: () => true,
    hasSession: () => true,
    onError: () => undefined,
  };
  /** Waits then last three quarters of their longest time. */
  const holdTimers = (): void => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
  };
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it('serves a few nodes in the turn of their change, once each, and many in later turns', async () => {
    const { served, fanOut } = recording();
    let turned = false;
    setImmediate(() => (turned = true));
    fanOut.touch(['a', 'b']);
    fanOut.touch(['a']);
    expect(served).toEqual([]);
    for (let microtask = 0; microtask < 10; microtask += 1) await Promise.resolve();
    expect([served, turned]).toEqual([[], false]);
    await until(() => fanOut.waiting === 0);
    expect(served).toEqual(['a', 'b']);
    await fanOut.close();
  });

  /** @param act is called before a node counts as served */
  function recording(over: Partial<FanOutDeps> = {}, act: (nodeId: string) => unknown = () => undefined) {
    const served: string[] = [];
    const serve = (nodeId: string): number => {
      act(nodeId);
      served.push(nodeId);
      return 0;
    };
    return { served, fanOut: createFanOut({ ...deps, serve, ...over }) };
  }

  /** What was served in each turn of the event loop, until all were. */
  async function perTurn(count: number, bytes: number): Promise<readonly number[]> {
    let served = 0;
    const serve = (): number => {
      served += 1;
      return bytes;
    };
    const fanOut = createFanOut({ ...deps, serve });
    fanOut.touch(names(count));
    const turns: number[] = [];
    for (let before = 0; fanOut.running && turns.length < 100; before = served) {
      await turn();
      turns.push(served - before);
    }
    await fanOut.close();
    return turns.filter((nodes) => nodes > 0);
  }

  it('gives the event loop a turn after every slice of nodes', async () => {
    expect(await perTurn(3 * sliceNodes + 1, 0)).toEqual([sliceNodes, sliceNodes, sliceNodes, 1]);
  });

  it('gives the event loop a turn after many bytes too', async () => {
    expect(await perTurn(10, sliceBytes / 4)).toEqual([4, 4, 2]);
    expect(await perTurn(10, sliceBytes / 4 - 1)).toEqual([5, 5]);
    expect(await perTurn(5, 2 * sliceBytes)).toEqual([1, 1, 1, 1, 1]);
  });

  it('serves a node again that changes while it is served', async () => {
    let served = 0;
    const fanOut = createFanOut({
      ...deps,
      serve: (nodeId) => {
        served += 1;
        if (served === 1) fanOut.touch([nodeId]);
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
      const late = async (): Promise<void> => {
        for (let passed = 0; passed < microtasks; passed += 1) await Promise.resolve();
        fanOut.touch(['late']);
      };
      const { served, fanOut } = recording({}, (nodeId) => nodeId === 'first' && late());
      fanOut.touch(['first']);
      await until(() => served.includes('late'));
      await fanOut.close();
    },
  );

  it('is not delayed by edits that never stop', async () => {
    const { served, fanOut } = recording();
    // A change in every turn of the event loop: a debouncer without a maximum would never fire.
    for (let round = 0; round < 50; round += 1) {
      fanOut.touch(['busy']);
      await turn();
    }
    expect(served.length).toBeGreaterThan(10);
    await fanOut.close();
  });

  it('serves a node once, in its place, when it changes again while it waits', async () => {
    const { served, fanOut } = recording();
    fanOut.touch(['a', 'b']);
    fanOut.touch(['a', 'c', 'b']);
    await until(() => fanOut.waiting === 0 && served.length >= 3);
    expect(served).toEqual(['a', 'b', 'c']);
    await fanOut.close();
  });

  it('serves the other nodes first when one cannot be served, and tries that one again', async () => {
    let failures = 1;
    const { served, fanOut } = recording({}, (nodeId) => {
      if (nodeId === 'bad' && failures-- > 0) throw new Error('not now');
    });
    fanOut.touch(['bad', 'good']);
    await until(() => served.length === 2);
    expect(served).toEqual(['good', 'bad']);
    await fanOut.close();
  });

  it('waits longer from failure to failure, and begins anew once everything was served', async () => {
    holdTimers();
    const tries: number[] = [];
    let failures = 5;
    const serve = (): number => {
      tries.push(performance.now());
      if (failures-- > 0) throw new Error('not now');
      return 0;
    };
    const fanOut = createFanOut({ ...deps, serve });
    const untilTried = async (times: number): Promise<void> => {
      for (let steps = 0; tries.length < times && steps < 1_000; steps += 1) await pass(10);
    };
    fanOut.touch(['a']);
    await untilTried(6);
    failures = 1;
    fanOut.touch(['a']);
    await untilTried(8);
    expect(waitsOf(tries)).toEqual([150, 300, 600, 1_200, 1_500, 0, 150]);
    await fanOut.close();
  });

  it('waits while nothing may be pushed, and serves every changed node afterwards', async () => {
    let open = false;
    const { served, fanOut } = recording({ mayPush: () => open });
    fanOut.touch(['a', 'b']);
    await turn();
    await turn();
    expect(served).toEqual([]);
    open = true;
    fanOut.wake();
    await until(() => served.length === 2);
    await fanOut.close();
  });

  it('stops within a slice when nothing may be pushed any more, and goes on there', async () => {
    let open = true;
    let rests = 0;
    const over = { mayPush: () => open, onRest: () => void (rests += 1) };
    const { served, fanOut } = recording(over, (nodeId) => (open = nodeId !== 'b'));
    fanOut.touch(['a', 'b', 'c']);
    await until(() => !fanOut.running);
    expect([served, fanOut.waiting, rests]).toEqual([['a', 'b'], 1, 1]);
    fanOut.wake();
    expect(fanOut.running).toBe(false);
    open = true;
    fanOut.wake();
    expect(fanOut.running).toBe(true);
    await until(() => !fanOut.running);
    expect([served, fanOut.waiting, rests]).toEqual([['a', 'b', 'c'], 0, 2]);
    await fanOut.close();
  });

  it('passes over nodes without a session, and does not run for nothing', async () => {
    const { served, fanOut } = recording({ hasSession: (nodeId) => nodeId === 'here' });
    fanOut.touch(['gone']);
    fanOut.wake();
    expect([fanOut.running, fanOut.waiting]).toEqual([false, 0]);
    fanOut.touch(['gone', 'here']);
    expect([fanOut.running, fanOut.waiting]).toEqual([true, 1]);
    await until(() => !fanOut.running);
    expect(served).toEqual(['here']);
    await fanOut.close();
  });

  it('rests only when every changed node was served, those that changed as it ended as well', async () => {
    const told: string[] = [];
    const fanOut = createFanOut({
      ...deps,
      serve: (nodeId) => {
        told.push(nodeId);
        if (nodeId === 'first') void Promise.resolve().then(() => fanOut.touch(['second']));
        return 0;
      },
      onRest: () => void told.push('rest'),
    });
    fanOut.touch(['first']);
    await until(() => told.includes('rest'));
    expect(told).toEqual(['first', 'second', 'rest']);
    await fanOut.close();
  });

  it('counts nodes that could not be served as waiting, tells of each, and tries them again together', async () => {
    holdTimers();
    const tries: [string, string, number][] = [];
    const fanOut = createFanOut({
      ...deps,
      onError: (nodeId, error) => void tries.push([nodeId, String(error), performance.now()]),
      serve: (nodeId) => {
        if (nodeId !== 'good') throw new Error('not now');
        return 0;
      },
    });
    const start = performance.now();
    fanOut.touch(['a', 'good', 'b']);
    for (let steps = 0; steps < 100; steps += 1) await pass(10);
    const both = (at: number) => ['a', 'b'].map((nodeId) => [nodeId, 'Error: not now', at]);
    expect([tries, fanOut.waiting]).toEqual([[0, 150, 450].flatMap((after) => both(start + after)), 2]);
    await fanOut.close();
    expect(fanOut.waiting).toBe(0);
  });

  it('waits no shorter for a node that fails because others are served meanwhile', async () => {
    holdTimers();
    const tries: number[] = [];
    const fanOut = createFanOut({
      ...deps,
      serve: (nodeId) => {
        if (nodeId !== 'bad') return 0;
        tries.push(performance.now());
        throw new Error('not now');
      },
    });
    fanOut.touch(['bad']);
    for (let steps = 0; tries.length < 5 && steps < 1_000; steps += 1) {
      await pass(10);
      fanOut.touch(['good']);
    }
    expect(waitsOf(tries)).toEqual([150, 300, 600, 1_200]);
    await fanOut.close();
  });

  it('serves nothing after its close', async () => {
    const served: string[] = [];
    let closing: Promise<void> | undefined;
    const fanOut = createFanOut({
      ...deps,
      serve: (nodeId) => {
        served.push(nodeId);
        if (nodeId === 'bad') throw new Error('not now');
        closing = fanOut.close();
        return 0;
      },
    });
    fanOut.touch(['bad', 'good', 'next']);
    await until(() => closing !== undefined);
    await closing;
    fanOut.touch(['later']);
    fanOut.wake();
    await turn();
    expect([served, fanOut.running]).toEqual([['bad', 'good'], false]);
  });
});

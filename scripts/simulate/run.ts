/** Plays a scenario: agents connect, operators change things, connections break, and in the end all must converge. */
import { sleep, startLoop, withDeadline, type Loop } from '../../src/kernel/background.js';
import { createArrivals, type Arrival } from './arrivals.js';
import { startCrowd, type Crowd } from './crowd.js';
import type { Installation } from './installation.js';
import type { AppliedEvent } from './process.js';
import { createSample, histogramOf, tenth, timesOf, type Result, type Second, type Storm } from './result.js';
import type { Scenario } from './scenario.js';
import type { Site } from './site.js';

interface RunOptions {
  readonly scenario: Scenario;
  readonly installation: Installation;
  readonly site: Site;
  readonly setUpSeconds: number;
  /** Ends the scenario early; the result is still computed. */
  readonly signal: AbortSignal;
  /** Called once a second. */
  readonly onSecond: (second: Second, refused: number) => void;
}

const sampleMax = 500_000;
const churnEveryMs = 200;
const stateEveryMs = 1_000;
const pollMs = 100;
const notConvergedShown = 10;

const now = (): number => Number(process.hrtime.bigint()) / 1e6;
const since = (from: number): number => tenth((now() - from) / 1_000);

export async function play(options: RunOptions): Promise<Omit<Result, 'hops'>> {
  const { scenario, installation, site, signal } = options;
  const arrivals = createArrivals();
  const samples = { one: createSample(sampleMax), all: createSample(sampleMax) };
  /** In the current second. */
  let recent: number[] = [];
  const note = (found: readonly Arrival[]): void => {
    for (const { kind, tookMs } of found) {
      samples[kind].add(tookMs);
      recent.push(tookMs);
    }
  };
  let regular: ReadonlySet<string> = new Set();
  const onApplied = (events: readonly AppliedEvent[]): void => {
    for (const event of events) if (regular.has(event.nodeId)) note(arrivals.applied(event));
  };

  const began = now();
  const crowd = await startCrowd(scenario, installation.endpoint, site.nodes, onApplied);
  regular = crowd.regular;
  const seconds: Second[] = [];
  const storms: { -readonly [Field in keyof Storm]: Storm[Field] }[] = [];
  const edits = { one: 0, all: 0, failed: 0 };
  const loops: Loop[] = [];
  try {
    const serviceBefore = await installation.cpuSeconds();
    const watching = watch(crowd, options, (state) => {
      const times = timesOf(recent);
      recent = [];
      const second = {
        ...state,
        second: seconds.length + 1,
        behind: arrivals.behind(),
        p50: times?.p50 ?? null,
        p99: times?.p99 ?? null,
      };
      seconds.push(second);
      return second;
    });
    loops.push(watching);
    const allConnected = await waitUntil(crowd, scenario.agents, scenario.connectSeconds * 1_000, signal);
    const connectSeconds = allConnected ? since(began) : null;

    const edit = async (kind: 'one' | 'all'): Promise<void> => {
      const sentAt = now();
      edits[kind] += 1;
      try {
        const { nodeId, generation } = await site.edit(kind);
        const touched = nodeId === undefined ? regular : new Set([nodeId]);
        note(
          arrivals.changed(
            kind,
            sentAt,
            generation,
            [...touched].filter((each) => regular.has(each)),
          ),
        );
      } catch {
        edits.failed += 1;
      }
    };
    const acts: Loop[] = [];
    if (scenario.editsOfOne > 0) acts.push(atRate(scenario.editsOfOne, () => edit('one')));
    if (scenario.editsOfAll > 0) acts.push(atRate(scenario.editsOfAll, () => edit('all')));
    if (scenario.churn > 0) acts.push(churning(crowd, scenario.churn));
    loops.push(...acts);
    const { over } = await storming(crowd, scenario, signal, storms);
    await Promise.all(acts.map((act) => act.close()));

    const ending = now();
    await crowd.relent();
    // One more change of all nodes, which agents that rejected or did not read must apply as well.
    await edit('all');
    const settled = await settle(crowd, site, scenario, signal);
    // Waits for all to connect, unless some never will.
    await withDeadline(over, stateEveryMs);
    const state = await crowd.state();
    const serviceAfter = await installation.cpuSeconds();
    const { service: _, json: __, keep: ___, reportFile: ____, ...played } = scenario;
    return {
      scenario: played,
      url: installation.url,
      setUpSeconds: options.setUpSeconds,
      connectSeconds,
      edits,
      applied: { one: timesOf(samples.one.values), all: timesOf(samples.all.values) },
      lastApplied: timesOf(arrivals.lasts),
      histogram: histogramOf([...samples.one.values, ...samples.all.values]),
      counts: state.counts,
      agents: { rejecting: crowd.rejecting, slow: crowd.slow, cpuSeconds: tenth(state.cpuSeconds) },
      serviceCpuSeconds:
        serviceBefore === undefined || serviceAfter === undefined ? null : tenth(serviceAfter - serviceBefore),
      storms,
      seconds,
      converged: scenario.agents - settled.length,
      notConverged: settled.slice(0, notConvergedShown),
      settleSeconds: settled.length === 0 ? since(ending) : null,
    };
  } finally {
    await Promise.all(loops.map((loop) => loop.close()));
    await crowd.close();
  }
}

/** Runs `act` this often per second. A call that takes longer than its turn delays the next. */
function atRate(perSecond: number, act: () => Promise<void>): Loop {
  return startLoop(1_000 / perSecond, act, () => undefined);
}

function churning(crowd: Crowd, perSecond: number): Loop {
  let due = 0;
  return startLoop(
    churnEveryMs,
    async () => {
      due += (perSecond * churnEveryMs) / 1_000;
      const whole = Math.floor(due);
      due -= whole;
      if (whole > 0) await crowd.cut(whole);
    },
    () => undefined,
  );
}

/** Waits out the scenario, and cuts all connections at its storms. @returns resolves when all are back */
async function storming(
  crowd: Crowd,
  { storms, durationSeconds, agents, connectSeconds }: Scenario,
  signal: AbortSignal,
  into: { -readonly [Field in keyof Storm]: Storm[Field] }[],
): Promise<{ readonly over: Promise<unknown> }> {
  const began = now();
  const returns: Promise<void>[] = [];
  for (const atSecond of storms) {
    await sleep(began + atSecond * 1_000 - now(), signal);
    if (signal.aborted) break;
    const [cutAt, cut] = [now(), await crowd.cut(agents)];
    const storm = { atSecond, cut, backAfterSeconds: null as number | null };
    into.push(storm);
    const back = async (): Promise<void> => {
      if (await waitUntil(crowd, agents, connectSeconds * 1_000, signal)) storm.backAfterSeconds = since(cutAt);
    };
    returns.push(back());
  }
  await sleep(began + durationSeconds * 1_000 - now(), signal);
  return { over: Promise.all(returns) };
}

/** @returns whether this many were connected in time */
async function waitUntil(crowd: Crowd, count: number, withinMs: number, signal: AbortSignal): Promise<boolean> {
  const until = now() + withinMs;
  while (now() < until && !signal.aborted) {
    if ((await crowd.state()).connected >= count) return true;
    await sleep(pollMs, signal);
  }
  return false;
}

/** Waits until every node runs its newest generation. @returns the nodes that never did */
async function settle(
  crowd: Crowd,
  site: Site,
  { agents, settleSeconds }: Scenario,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const until = now() + settleSeconds * 1_000;
  await waitUntil(crowd, agents, settleSeconds * 1_000, signal);
  for (;;) {
    const known = await site.generations();
    const open = site.nodes
      .map(({ nodeId }) => nodeId)
      .filter((nodeId) => {
        const state = known.get(nodeId);
        return state === undefined || state.applied !== state.newest;
      });
    if (open.length === 0 || now() > until || signal.aborted) return open;
    await sleep(10 * pollMs, signal);
  }
}

/** Checks the agents and the service once a second. */
function watch(
  crowd: Crowd,
  { installation, onSecond }: RunOptions,
  add: (state: Pick<Second, 'connected' | 'applies' | 'rejects' | 'cores'>) => Second,
): Loop {
  let last = { applies: 0, rejects: 0, cpu: undefined as number | undefined, at: now() };
  return startLoop(
    stateEveryMs,
    async () => {
      const [{ connected, counts }, cpu, at] = [await crowd.state(), await installation.cpuSeconds(), now()];
      const cores =
        cpu === undefined || last.cpu === undefined
          ? null
          : tenth((10 * (cpu - last.cpu) * 1_000) / (at - last.at)) / 10;
      const { applies, rejects } = counts;
      const second = add({ connected, applies: applies - last.applies, rejects: rejects - last.rejects, cores });
      last = { applies, rejects, cpu, at };
      onSecond(
        second,
        Object.values(counts.refusals).reduce((sum, count) => sum + count, 0),
      );
    },
    () => undefined,
  );
}

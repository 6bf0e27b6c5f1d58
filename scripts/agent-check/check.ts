/**
 * Plays the scenarios with an agent. If the kit starts the agent, it does so for each scenario, several at once, each
 * as its own node; an agent started by a person meets them one after the other.
 */
import type { HostPort } from '../../src/kernel/host-port.js';
import { errorText } from '../../src/kernel/errors.js';
import { environmentOf } from './agent-process.js';
import type { AgentEnvironment, AgentStarter } from './agent-process.js';
import type { PlayedNode } from './node.js';
import { CannotGoOn } from './play.js';
import type { Scenario } from './play.js';
import type { SentenceName } from './sentences.js';
import type { PlayedSession } from './session.js';
import { startCheckService } from './service.js';
import type { CheckService } from './service.js';
import { openSite } from './site.js';
import type { Site } from './site.js';
import type { Broken } from './verdicts.js';

export interface CheckOptions {
  readonly at: HostPort;
  readonly scenarios: readonly Scenario[];
  /** Absent: a person starts the agent, with the environment that `announce` shows. */
  readonly starter?: AgentStarter;
  /** How many agents run at once if the kit starts them; default 6. */
  readonly atOnce?: number;
  readonly announce?: (environment: AgentEnvironment) => void;
  readonly onResult?: (result: ScenarioResult) => void;
  readonly signal?: AbortSignal;
}

export interface ScenarioResult {
  readonly name: string;
  readonly about: string;
  /** `failed`: the kit itself could not play it. */
  readonly outcome: 'kept' | 'broken' | 'skipped' | 'failed';
  /** Why it was skipped or failed. */
  readonly why: string | undefined;
  readonly seconds: number;
  readonly kept: readonly SentenceName[];
  readonly broken: readonly Broken[];
}

const patience = { startedByKit: 30_000, startedByHand: 90_000 };

/** @returns the results in the order of the scenarios, without those that had not started when the signal aborted */
export async function checkAgent(options: CheckOptions): Promise<readonly ScenarioResult[]> {
  const { starter, scenarios, signal, atOnce = 6 } = options;
  const service = await startCheckService(options.at);
  const site = await openSite();
  const results: (ScenarioResult | undefined)[] = scenarios.map(() => undefined);
  const waiting = [...scenarios.entries()];
  const shared = starter === undefined ? service.addNode() : undefined;
  if (shared !== undefined) options.announce?.(environmentOf(service.endpoint, shared));

  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined && signal?.aborted !== true; next = waiting.shift()) {
      const [index, scenario] = next;
      const result = await playOne({ service, site, scenario, starter, node: shared ?? service.addNode() });
      results[index] = result;
      options.onResult?.(result);
    }
  };
  try {
    await Promise.all(Array.from({ length: starter === undefined ? 1 : atOnce }, worker));
  } finally {
    await service.close();
    await site.close();
  }
  return results.filter((result) => result !== undefined);
}

interface Round {
  readonly service: CheckService;
  readonly site: Site;
  readonly scenario: Scenario;
  readonly starter: AgentStarter | undefined;
  readonly node: PlayedNode;
}

/** How long a reset connection may take to disappear. */
const goneWithinMs = 5_000;

/** Ends the previous scenario's sessions, for an agent that meets one after the other. */
async function endSessions(service: CheckService, node: PlayedNode): Promise<void> {
  const open = (): readonly PlayedSession[] => node.sessions.filter(({ endedAt }) => endedAt === undefined);
  for (const { granted } of open()) service.cut(granted.peer);
  await node.until(() => (open().length === 0 ? true : undefined), goneWithinMs);
}

async function playOne({ service, site, scenario, starter, node }: Round): Promise<ScenarioResult> {
  const { name, about } = scenario;
  if (scenario.restarts === true && starter === undefined) {
    const why = 'the kit cannot stop an agent that it has not started: use --start';
    return { name, about, outcome: 'skipped', why, seconds: 0, kept: [], broken: [] };
  }
  node.begin();
  const { verdicts } = node;
  const agent = starter?.(environmentOf(service.endpoint, node));
  const began = performance.now();
  let why: string | undefined;
  try {
    await endSessions(service, node);
    // The scenario prepares everything before its first wait, and so before the agent comes.
    const played = scenario.play({
      node,
      site,
      agent,
      check: verdicts.check,
      patienceMs: agent === undefined ? patience.startedByHand : patience.startedByKit,
      cut: service.cut,
    });
    await Promise.all([played, agent?.start()]);
  } catch (error) {
    if (!(error instanceof CannotGoOn)) why = errorText(error);
  } finally {
    await agent?.stop();
  }
  const broken = verdicts.broken();
  const outcome = why !== undefined ? 'failed' : broken.length > 0 ? 'broken' : 'kept';
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  return { name, about, outcome, why, seconds, kept: verdicts.kept(), broken };
}

/**
 * Plays the scenarios with an agent. If the kit starts the agent, it does so for each scenario, several at once, each
 * as its own node; an agent started by a person meets them one after the other.
 */
import type { HostPort } from '../../src/kernel/host-port.js';
import { errorText } from '../../src/kernel/errors.js';
import { environmentOf, type AgentEnvironment, type AgentStarter } from './agent-process.js';
import type { PlayedNode } from './node.js';
import { CannotGoOn, type Scenario } from './play.js';
import type { SentenceName } from './sentences.js';
import type { PlayedSession } from './session.js';
import { startCheckService, type CheckService } from './service.js';
import { openSite, type Site } from './site.js';
import type { Broken, Verdicts } from './verdicts.js';

export interface CheckOptions {
  readonly at: HostPort;
  readonly scenarios: readonly Scenario[];
  /** Absent: a person starts the agent, with the environment that `announce` shows. */
  readonly starter?: AgentStarter;
  /** How many agents run at once if the kit starts them; default 6. */
  readonly atOnce?: number;
  readonly announce?: (environment: AgentEnvironment) => void;
  readonly onResult?: (result: ScenarioResult) => void;
  /** Receives the output of agents that the kit starts. */
  readonly heard?: (text: string) => void;
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
  const { starter, scenarios, signal, atOnce = 6, heard } = options;
  const kit = await openKit(options.at);
  const results: (ScenarioResult | undefined)[] = scenarios.map(() => undefined);
  const waiting = [...scenarios.entries()];
  const shared = starter === undefined ? kit.service.addNode() : undefined;
  if (shared !== undefined) options.announce?.(environmentOf(kit.service.endpoint, shared));

  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined && signal?.aborted !== true; next = waiting.shift()) {
      const [index, scenario] = next;
      const result = await playScenario(kit, scenario, { starter, heard, node: shared });
      results[index] = result;
      options.onResult?.(result);
    }
  };
  try {
    await Promise.all(Array.from({ length: starter === undefined ? 1 : atOnce }, worker));
  } finally {
    await kit.close();
  }
  return results.filter((result) => result !== undefined);
}

/**
 * What all scenarios share.
 * @internal exported for tests
 */
export interface Kit {
  readonly service: CheckService;
  readonly site: Site;
  close(): Promise<void>;
}

/**
 * @throws Error if it cannot listen there
 * @internal exported for tests
 */
export async function openKit(at: HostPort): Promise<Kit> {
  const service = await startCheckService(at);
  const site = await openSite();
  return {
    service,
    site,
    async close() {
      await service.close();
      await site.close();
    },
  };
}

interface Round {
  /** Absent: a person has started the agent, for `node`. */
  readonly starter: AgentStarter | undefined;
  readonly node?: PlayedNode | undefined;
  readonly heard?: ((text: string) => void) | undefined;
  /** The scenario ends as soon as this sentence is broken. */
  readonly until?: SentenceName;
}

/** How long a reset connection may take to disappear. */
const goneWithinMs = 5_000;

/** Ends the previous scenario's sessions, for an agent that meets one after the other. */
async function endSessions(service: CheckService, node: PlayedNode): Promise<void> {
  const open = (): readonly PlayedSession[] => node.sessions.filter(({ endedAt }) => endedAt === undefined);
  for (const { granted } of open()) service.cut(granted.peer);
  await node.until(() => (open().length === 0 ? true : undefined), goneWithinMs);
}

/**
 * Plays one scenario with an agent: with a new one, unless a person has started it.
 * @internal exported for tests
 */
export async function playScenario({ service, site }: Kit, scenario: Scenario, round: Round): Promise<ScenarioResult> {
  const { name, about } = scenario;
  const { starter, node = service.addNode() } = round;
  if (scenario.restarts === true && starter === undefined) {
    const why = 'the kit cannot stop an agent that it has not started: use --start';
    return { name, about, outcome: 'skipped', why, seconds: 0, kept: [], broken: [] };
  }
  node.begin();
  const { verdicts } = node;
  const output = createOutput(node, verdicts, round.heard);
  const agent = starter?.(environmentOf(service.endpoint, node), output.take);
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
    const all = Promise.all([played, agent?.start()]);
    await (round.until === undefined ? all : Promise.race([all, verdicts.whenBroken(round.until)]));
  } catch (error) {
    if (!(error instanceof CannotGoOn)) why = errorText(error);
  } finally {
    await agent?.stop();
  }
  if (agent !== undefined) output.end();
  const broken = verdicts.broken();
  const outcome = why !== undefined ? 'failed' : broken.length > 0 ? 'broken' : 'kept';
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  return { name, about, outcome, why, seconds, kept: verdicts.kept(), broken };
}

/** Longer than any secret. */
const overlapCharacters = 200;

/** Reads what the agent writes, for secrets in it. */
function createOutput(node: PlayedNode, { check }: Verdicts, heard: Round['heard']) {
  let tail = '';
  const keeps = (text: string): boolean => !node.secretTexts.some((secret) => text.includes(secret));
  const observed = 'the output of the agent shows the PSK, or a key that comes from it';
  return {
    take(text: string): void {
      heard?.(text);
      tail = tail.slice(-overlapCharacters) + text;
      if (!keeps(tail)) check('pskNotLogged', false, observed);
    },
    end: (): void => void check('pskNotLogged', keeps(tail), observed),
  };
}

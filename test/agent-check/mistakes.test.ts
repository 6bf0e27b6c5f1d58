/** The conformance kit names the sentence of each mistake that is planted in the reference agent, and says when it cannot run. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compiledRoot } from '../../scripts/stack/process.js';
import { openKit, playScenario, type Kit, type ScenarioResult } from '../../scripts/agent-check/check.js';
import { scenarioText } from '../../scripts/agent-check/report.js';
import { scenarios } from '../../scripts/agent-check/scenarios.js';
import { sentences } from '../../scripts/agent-check/sentences.js';
import { projectRoot } from '../support/project-root.js';
import { inProcess, openFaultyBuilds, type FaultyBuilds } from './faulty-agents.js';
import { mistakes, type Mistake } from './mistakes.js';

const timeoutMs = 240_000;
/** Many, because they mostly wait; all of them at one service. */
const atOnce = 12;
const found = new Map<Mistake, Promise<ScenarioResult>>();
let folder: string;
let builds: FaultyBuilds;
let kit: Kit;

async function play(mistake: Mistake, agent: ReturnType<FaultyBuilds['agentWith']>): Promise<ScenarioResult> {
  const scenario = scenarios.find(({ name }) => name === mistake.scenario);
  if (scenario === undefined) throw new Error(`there is no scenario ${mistake.scenario}`);
  return playScenario(kit, scenario, { starter: inProcess(await agent, folder), until: mistake.sentence });
}

beforeAll(async () => {
  mkdirSync(join(projectRoot, 'dist'), { recursive: true });
  folder = mkdtempSync(join(projectRoot, 'dist', 'agent-mistakes-'));
  builds = await openFaultyBuilds(folder);
  kit = await openKit({ host: '127.0.0.1', port: 0 });
  // One is built after the other.
  let built: Promise<unknown> = Promise.resolve();
  const waiting: (() => Promise<unknown>)[] = [];
  for (const mistake of mistakes) {
    const begin = (resolve: (result: Promise<ScenarioResult>) => void): void => {
      waiting.push(() => {
        const agent = built.then(() => builds.agentWith(mistake));
        built = agent.catch(() => undefined);
        const result = play(mistake, agent);
        resolve(result);
        return result.catch(() => undefined);
      });
    };
    found.set(mistake, new Promise(begin));
  }
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next();
  };
  for (let lanes = 0; lanes < atOnce; lanes += 1) void lane();
});
afterAll(async () => {
  await Promise.allSettled(found.values());
  await kit.close();
  await builds.close();
  rmSync(folder, { recursive: true, force: true });
}, timeoutMs);

it('a mistake is planted for each sentence', () => {
  const planted = new Set<string>(mistakes.map(({ sentence }) => sentence));
  expect(Object.keys(sentences).filter((name) => !planted.has(name))).toEqual([]);
});

describe.concurrent('an agent', () => {
  it.each(mistakes)('that $what breaks a sentence, which is named', { timeout: timeoutMs }, async (mistake) => {
    const result = await found.get(mistake);
    if (result === undefined) throw new Error('it was not played');
    expect(result, scenarioText(result)).toMatchObject({ outcome: 'broken' });
    expect(result.broken.map(({ sentence }) => sentence)).toContain(mistake.sentence);
    const { text, document, anchor } = sentences[mistake.sentence];
    expect(scenarioText(result)).toContain(text);
    expect(scenarioText(result)).toContain(`${document}#${anchor}`);
  });
});

it('a kit that cannot run says so with exit code 2', { timeout: timeoutMs }, async () => {
  const owner = createServer();
  await new Promise<void>((resolve) => owner.listen(0, '127.0.0.1', resolve));
  const at = `127.0.0.1:${(owner.address() as AddressInfo).port}`;
  const child = spawn(process.execPath, [join(compiledRoot, 'scripts/agent-check.js'), at, '--start', 'exec true']);
  let complaint = '';
  child.stderr.on('data', (data) => (complaint += String(data)));
  const [code] = (await once(child, 'close')) as [number | null];
  await new Promise((resolve) => owner.close(resolve));
  expect(complaint).toContain('The kit cannot run: ');
  expect(code).toBe(2);
});

/** The conformance kit finds nothing in the reference agent and in both examples. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentCommand, type AgentStarter } from '../../scripts/agent-check/agent-process.js';
import { checkAgent, type ScenarioResult } from '../../scripts/agent-check/check.js';
import { isConforming, jsonReport, scenarioText } from '../../scripts/agent-check/report.js';
import { scenarios } from '../../scripts/agent-check/scenarios.js';
import { notChecked, sentences, type SentenceName } from '../../scripts/agent-check/sentences.js';
import { startAgent } from '../../src/agent/agent.js';
import { readAgentConfig } from '../../src/agent/config.js';
import { projectRoot } from '../support/project-root.js';
import { examplePython } from './example-python.js';
import { inProcess } from './faulty-agents.js';

const at = { host: '127.0.0.1', port: 0 };
const quick = scenarios.filter(({ isSlow }) => isSlow !== true);
const timeoutMs = 120_000;
const protocol = 'svc/control/v1';

let folder: string;
beforeAll(() => {
  mkdirSync(join(projectRoot, 'dist'), { recursive: true });
  folder = mkdtempSync(join(projectRoot, 'dist', 'agent-check-'));
});
const exampleTypeScript = (): string => join(folder, 'example-agent.mjs');
/** The code that Python's protoc makes of proto/. */
const generated = (): string => join(folder, 'python');
// Before everything else: while Python's protoc runs, this process hears nothing.
beforeAll(async () => {
  const entryPoints = [join(projectRoot, 'examples', 'agent-ts', 'agent.ts')];
  const outfile = exampleTypeScript();
  await build({ entryPoints, outfile, bundle: true, packages: 'external', platform: 'node', format: 'esm' });
  if (!existsSync(examplePython)) return;
  mkdirSync(generated());
  const out = [`--python_out=${generated()}`, `--grpc_python_out=${generated()}`];
  const files = readdirSync(join(projectRoot, 'proto', protocol)).map((file) => `${protocol}/${file}`);
  const ran = spawnSync(examplePython, ['-I.', ...out, ...files], {
    cwd: join(projectRoot, 'proto'),
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect({ status: ran.status, stderr: ran.stderr }).toEqual({ status: 0, stderr: '' });
}, timeoutMs);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** All quick scenarios. */
const check = (starter: AgentStarter): Promise<readonly ScenarioResult[]> =>
  checkAgent({ at, scenarios: quick, starter, atOnce: 6 });

/** What went wrong, which should be nothing. */
const faults = (results: readonly ScenarioResult[]): readonly string[] =>
  results.filter(({ outcome }) => outcome !== 'kept').map(scenarioText);

it('quotes sentences that stand in their documents, under their headings', () => {
  const all = [...Object.values(sentences), ...notChecked.map(({ sentence }) => sentence)];
  const missing = all.filter(({ document, anchor, text }) => !sectionOf(document, anchor).includes(text));
  expect(missing).toEqual([]);
});

/** The text under a heading, with single spaces. */
function sectionOf(document: string, anchor: string): string {
  const sections = readFileSync(join(projectRoot, document), 'utf8').split(/^#+ /m);
  const section = sections.find((text) => {
    const [heading = ''] = text.split('\n');
    return (
      heading
        .toLowerCase()
        .replace(/[^\w -]/g, '')
        .replaceAll(' ', '-') === anchor
    );
  });
  return (section ?? '').replaceAll(/\s+/g, ' ');
}

describe.concurrent('an agent in this process', () => {
  const one = 'that is the reference agent breaks nothing, and every sentence is checked';
  it(one, { timeout: timeoutMs }, async () => {
    const results = await check(inProcess({ startAgent, readAgentConfig }, folder));
    expect(faults(results)).toEqual([]);
    expect(isConforming(results)).toBe(true);
    const report = JSON.parse(jsonReport(results)) as { readonly kept: readonly { readonly name: SentenceName }[] };
    // What only a broken agent shows is not among them.
    const never: readonly SentenceName[] = ['firstPayloads', 'limits', 'ownNodeId', 'textBound'];
    const expected = Object.keys(sentences).filter((name) => !never.some((sentence) => sentence === name));
    expect(report.kept.map(({ name }) => name).toSorted()).toEqual(expected.toSorted());
  });
});

describe.concurrent('an example', () => {
  it('in TypeScript breaks nothing', { timeout: timeoutMs }, async () => {
    const command = `PROTO_FOLDER='${join(projectRoot, 'proto')}' exec '${process.execPath}' '${exampleTypeScript()}'`;
    expect(faults(await check(agentCommand(command)))).toEqual([]);
  });

  const python = it.skipIf(!existsSync(examplePython));
  python('in Python breaks nothing', { timeout: timeoutMs }, async () => {
    const interpreter = join(examplePython, '..', 'python');
    const agent = join(projectRoot, 'examples', 'agent-py', 'agent.py');
    const command = `PYTHONPATH='${generated()}' PYTHONDONTWRITEBYTECODE=1 exec '${interpreter}' '${agent}'`;
    expect(faults(await check(agentCommand(command)))).toEqual([]);
  });
});

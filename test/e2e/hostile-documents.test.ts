/**
 * Documents that are made to cost as much as they can, sent to the real service by a viewer: each is refused with its place,
 * others are answered meanwhile, no agent loses its session, and the next plan works
 * (`docs/contract/automation.md#the-fleet-as-a-file`, the document and the limits).
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually, type RunningProgram } from '../../scripts/stack/process.js';
import { createRestClient, type RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';

interface NodeView {
  readonly id: string;
  readonly status: string;
  readonly control_psk: string;
}

const patienceMs = 120_000;
let folder: string;
let service: ServiceProcess;
let admin: RestClient;
let viewer: RestClient;
let token: string;
let agent: RunningProgram;
let node: NodeView;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-documents-'));
  service = await prepareService({ dataDir: folder });
  await service.start();
  admin = await service.admin();
  node = await admin.call<NodeView>('POST', '/api/nodes', { name: 'edge', address: '127.0.0.1' });
  agent = startAgentProcess({
    nodeId: node.id,
    controlEndpoint: service.controlEndpoint,
    controlPsk: node.control_psk,
  });
  ({ token } = await admin.call<{ token: string }>('POST', '/api/auth/tokens', { name: 'v', role: 'viewer' }));
  viewer = createRestClient(service.url, token, patienceMs);
  await eventually(
    'the agent is online',
    async () => ((await admin.call<NodeView>('GET', `/api/nodes/${node.id}`)).status === 'online' ? true : undefined),
    patienceMs,
  );
}, patienceMs);
afterAll(async () => {
  await agent.stop('SIGKILL');
  await service.stop();
  await rm(folder, { recursive: true, force: true });
});

/** The sessions that agents have ever opened. */
const sessions = async (): Promise<number> =>
  (await admin.call<{ items: readonly unknown[] }>('GET', '/api/events?types=session&after=start&wait_ms=5000')).items
    .length;

const many = (count: number, entry: (index: number) => string, between = ''): string =>
  Array.from({ length: count }, (_, index) => entry(index)).join(between);
const tooDeep = /^invalid_request: \d+:\d+ \S+: expected at most 64 mappings and lists inside each other$/;

test.each<[string, () => string, RegExp]>([
  [
    'aliases of one anchor',
    () => `svc: 1\nx: [&a 1${', *a'.repeat(7_700)}]\n`,
    /: \d+:\d+ document: expected at most 1000 aliases/,
  ],
  [
    'aliases that expand',
    () => `svc: 1\na: &a [${'x, '.repeat(9_000)}x]\nb: &b [${'*a, '.repeat(30)}*a]\nc: [${'*b, '.repeat(30)}*b]\n`,
    /\d+:\d+ \S+: expected aliases that expand to at most/,
  ],
  ['closed brackets', () => `svc: 1\nx: ${'['.repeat(50_000)}${']'.repeat(50_000)}\n`, tooDeep],
  ['open brackets', () => `svc: 1\nx: ${'['.repeat(50_000)}`, tooDeep],
  ['brackets of JSON', () => `{"svc": 1, "x": ${'['.repeat(50_000)}${']'.repeat(50_000)}}`, tooDeep],
  [
    'brackets of long JSON',
    () => `{"svc": 1, "x": ${'['.repeat(600_000)}${']'.repeat(600_000)}}`,
    /^invalid_request: x\S*: expected at most 64 mappings and lists inside each other$/,
  ],
  ['lists in lists on a line', () => `svc: 1\nx:\n  ${'- '.repeat(15_000)}1\n`, tooDeep],
  ['keys that are keys', () => `${'? '.repeat(15_000)}1\n`, tooDeep],
  [
    'nothing but commas',
    () => `svc: 1\nx: [${','.repeat(31_000)}]\n`,
    /^invalid_request: 2:\d+ document: expected YAML: /,
  ],
  [
    'nothing but closing brackets',
    () => `${'}'.repeat(99)}\n`.repeat(300),
    /^invalid_request: 1:1 document: expected YAML: /,
  ],
  [
    'many documents',
    () => '---\na\n'.repeat(5_000),
    /^invalid_request: \d+:\d+ document: expected YAML: one document$/,
  ],
  [
    'a mapping of many keys',
    () => `svc: 1\nnodes:\n  a:\n    labels:\n${many(20_000, (i) => `      k${i}: v\n`)}`,
    /^invalid_request: 4:5 nodes\.a: expected at most \d+ values/,
  ],
  [
    'JSON of many keys',
    () => `{"svc": 1, "nodes": {"a": {"labels": {${many(200_000, (i) => `"k${i}":"v"`, ',')}}}}}`,
    /^invalid_request: nodes\.a\.labels: expected at most 2048 entries$/,
  ],
  [
    'JSON of empty objects',
    () => `{"svc": 1, "nodes": {"a": [${'{},'.repeat(2_200_000)}{}]}}`,
    /^invalid_request: nodes\.a: expected at most 2048 entries$/,
  ],
  [
    'more names than resources',
    () => `svc: 1\nnodes: {${many(60_000, (i) => `k${i}: 1`, ', ')}}\n`,
    /^invalid_request: 2:\d+ nodes: expected at most 50000 resources$/,
  ],
  [
    'long JSON with an unknown field',
    () =>
      `{"svc": 1, "nodes": {${many(15_000, (i) => `"n${i}":{"description":"${'d'.repeat(900)}"}`, ',')}, "last": {"colour": 1}}}`,
    /^invalid_request: nodes\.last\.colour: not a field of this document$/,
  ],
])(
  '%s are refused, while others are answered',
  async (_, text, sentence) => {
    let planning = true;
    const planned = fetch(`${service.url}/api/fleet/plan`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/yaml' },
      body: text(),
    }).finally(() => (planning = false));
    let answered = 0;
    for (; planning; answered += 1) {
      await (await fetch(`${service.url}/healthz`)).text();
      await delay(3);
    }
    const answer = await planned;
    expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([
      400,
      expect.stringMatching(sentence),
    ]);
    // A document that is read without a pause lets two through: the one that came before it, and one that waited for it.
    expect(answered).toBeGreaterThan(2);
    expect(await admin.call<object>('GET', '/api/nodes')).toMatchObject({ items: [{ status: 'online' }] });
    expect(await sessions()).toBe(1);
    const next = await viewer.call<{ steps: unknown[] }>('POST', '/api/fleet/plan', {
      document: 'svc: 1\nnodes: {a: {}}\n',
    });
    expect(next.steps).toHaveLength(1);
  },
  patienceMs,
);

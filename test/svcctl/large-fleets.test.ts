/** What a person sees of a large fleet: lines that fit the terminal, the worst first, and a last line that counts. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startPretendService, type Asked, type Given, type PretendService } from './support/pretend-service.js';
import { createRunner, terminals, type Runner } from './support/run.js';

let folder: string;
let service: PretendService;
let script: Runner;
let answer: (asked: Asked) => Given | undefined;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svcctl-large-'));
  service = await startPretendService((asked) => answer(asked));
  script = createRunner({ HOME: folder, SVC_SERVER: service.url, SVC_TOKEN: 'svcat_x' });
});
afterEach(async () => {
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The piece of a walk that was asked for. */
function pieceOf(path: string, items: readonly object[]): Given {
  const query = new URL(path, service.url).searchParams;
  const [after, size] = [query.get('after'), Number(query.get('page_size'))];
  const from = after === 'start' ? 0 : Number(after);
  const next = from + size < items.length ? String(from + size) : null;
  return { data: { items: items.slice(from, from + size), total: items.length, page_size: size, next } };
}

const idOf = (n: number): string => `0a921c95-6082-453d-ba98-${String(n).padStart(12, '0')}`;
const linesOf = (out: string): string[] => stripVTControlCharacters(out).trimEnd().split(/\r?\n/);

test('many names are found by one walk over the nodes', async () => {
  const nodes = Array.from({ length: 600 }, (_, n) => ({ id: idOf(n), name: `Node-${n}` }));
  const sent: string[][] = [];
  answer = ({ method, path, body }) => {
    if (method === 'GET') return pieceOf(path, nodes);
    sent.push(JSON.parse(body).node_ids);
    return { data: { entry: { id: idOf(1), resource: { name: 'nodes' } }, nodes: [] } };
  };
  const { code } = await script.run(['label', ...nodes.map(({ name }) => name.toLowerCase()), 'region=eu']);
  expect([code, sent.flat()]).toEqual([0, nodes.map(({ id }) => id)]);
  expect(service.asked.filter((asked) => asked.startsWith('GET')).length).toBeLessThan(10);
});

describe('audit', () => {
  const paths = Array.from({ length: 100 }, (_, n) => ({ path: `hops[${n}].listen_port` }));
  const entry = (n: number) => ({
    id: idOf(n),
    at: '2030-01-31T12:00:00.000Z',
    actor: { name: 'somebody with a long name' },
    token: null,
    action: 'l4_chain.update',
    resource: { name: `a chain with a name that is long ${n}` },
    changes: paths,
  });
  beforeEach(() => {
    answer = ({ path }) => pieceOf(path, [entry(1), entry(2)]);
  });

  test.skipIf(!terminals).each([80, 140, 240])(
    'has rows that fit a terminal of %i columns, with the whole id of each',
    async (columns) => {
      const lines = linesOf((await script.onTerminal(['audit'], [], [columns, 24])).out);
      expect(lines.filter((line) => line.length > columns)).toEqual([]);
      expect(lines).toEqual([
        expect.stringMatching(/^AT .*WHO .*ACTION .*RESOURCE .*ENTRY/),
        expect.stringContaining(` ${idOf(1)}`),
        expect.stringContaining(` ${idOf(2)}`),
      ]);
      expect(lines[1]).toMatch(/l4_c[a-z_.]*…? .*a cha/);
      expect(lines[1]!.includes('hops[0].listen_port')).toBe(columns > 140);
    },
  );

  test.skipIf(!terminals)('leaves out what changed before it cuts what was done', async () => {
    const short = { ...entry(1), actor: { name: 'ada' }, resource: { name: 'edge' } };
    answer = ({ path }) => pieceOf(path, [short]);
    const lines = linesOf((await script.onTerminal(['audit'], [], [80, 24])).out);
    expect(lines[1]).toMatch(new RegExp(`ada +l4_chain\\.update +edge +${idOf(1)}`));
  });

  test('names a field once that an apply changed of many resources', async () => {
    answer = ({ path }) =>
      pieceOf(path, [{ ...entry(1), changes: [...paths, ...paths].map(() => ({ path: 'target' })) }]);
    expect((await script.run(['audit'])).out.trimEnd()).toMatch(/ target$/);
    expect((await script.run(['audit'])).out).not.toContain('target target');
  });

  test('has all of each row in a pipe, the id before what is long', async () => {
    const { out } = await script.run(['audit']);
    expect(out.split('\n')[1]).toMatch(
      new RegExp(`^2030-01-31T12:00:00\\.000Z .*a chain with a name that is long 1  ${idOf(1)}  hops\\[0\\].*port$`),
    );
  });
});

test('labels of more nodes than one request takes are sent in several commands, and that is said', async () => {
  const nodes = Array.from({ length: 1_001 }, (_, n) => ({ id: idOf(n), name: `node-${n}` }));
  const sizes: number[] = [];
  answer = ({ method, path, body }) => {
    if (method === 'GET') return pieceOf(path, nodes);
    sizes.push(JSON.parse(body).node_ids.length);
    return { data: { entry: { id: idOf(sizes.length), resource: { name: `${sizes.at(-1)} nodes` } }, nodes: [] } };
  };
  const { code, out, err } = await script.run(['label', '--filter', 'q=node', 'region=eu']);
  expect([code, err, sizes]).toEqual([0, 'svcctl: 1001 nodes are sent in 3 commands\n', [500, 500, 1]]);
  expect(out).toBe(sizes.map((size, n) => `changed labels of ${size} nodes (entry ${idOf(n + 1)})\n`).join(''));
});

test.skipIf(!terminals)('status has lines that fit a terminal, under the title of their group', async () => {
  const traffic = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`figure_number_${n}`, n]));
  const sentence = 'a sentence with many words that goes on and on '.repeat(3).trim();
  answer = () => ({
    data: { nodes: { total: 1, offline: 1 }, traffic, matters: [{ severity: 'degraded', sentence }] },
  });
  const lines = linesOf((await script.onTerminal(['status'], [], [80, 24])).out);
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
  expect(lines.slice(0, 3)).toEqual([
    'nodes         total 1  offline 1',
    expect.stringMatching(/^traffic {7}figure_number_0 0 {2}figure_number_1 1 /),
    expect.stringMatching(/^ {14}figure_number_3 3 /),
  ]);
  expect(lines.filter((line) => line.startsWith('degraded      a sentence'))).toHaveLength(1);
});

describe.skipIf(!terminals)('top', () => {
  const node = (n: number, more: object = {}) => ({
    id: idOf(n),
    name: `node-${n}`,
    status: 'online',
    address: `192.0.2.${n % 250}`,
    generation: 3,
    apply: { state: 'applied' },
    listeners: { intended: 1, running: 1, failed: [] },
    labels: { zone: `zone-${n % 100}` },
    ...more,
  });
  const nodes = Array.from({ length: 1_000 }, (_, n) => node(n));
  nodes[700] = node(700, { listeners: { intended: 1, running: 0, failed: [{}] } });
  nodes[800] = node(800, { apply: { state: 'rejected' } });
  nodes[900] = node(900, { status: 'offline' });
  const frames = (out: string): string[][] => out.split('\u001b[H').slice(1).map(linesOf);
  const isFrame = (text: string) => (lines: readonly string[]) => lines[0]!.includes(text);
  beforeEach(() => {
    answer = ({ path }) =>
      path.startsWith('/api/nodes?') ? pieceOf(path, nodes) : { status: 503, error: 'unavailable: no feed here' };
  });

  test('shows the worst of a thousand first, sorts by name, and scrolls to the end, within the terminal', async () => {
    const keys = [
      ['1000 nodes', 's'],
      ['by name', '\u001b[6~'],
      ['20 above', '\u001b[F'],
      ['980 above', 'r'],
      ['reversed', 'q'],
    ] as const;
    const { code, out } = await script.onTerminal(['top'], keys, [80, 24]);
    expect(code).toBe(0);
    const shown = frames(out);
    for (const lines of shown) {
      expect(lines.length).toBeLessThanOrEqual(24);
      expect(lines.filter((line) => line.length > 80)).toEqual([]);
    }
    const named = (lines: readonly string[]): string[] => lines.slice(3, -1).map((line) => line.split(' ')[0]!);
    const worst = shown.find(isFrame('by worst'))!;
    expect(worst[0]).toBe('1000 nodes  999 online  1 offline  0 pending  by worst');
    expect(named(worst).slice(0, 5)).toEqual(['node-900', 'node-800', 'node-700', 'node-0', 'node-1']);
    const sorted = shown.filter(isFrame('by name'));
    expect(named(sorted[0]!).slice(0, 3)).toEqual(['node-0', 'node-1', 'node-2']);
    expect(named(sorted[1]!)[0]).toBe('node-20');
    expect(named(sorted[2]!).at(-1)).toBe('node-999');
    expect(sorted[3]!.at(-1)).toContain('980 above');
    expect(named(sorted[3]!).at(-1)).toBe('node-0');
  });

  test('filters by what a person types, labels too, and leaves the terminal as it was', async () => {
    const keys = [
      ['1000 nodes', '/'],
      ['/_', 'zone-42'],
      ['/zone-42_', '\r'],
      ['/zone-42', 'q'],
    ] as const;
    const { code, out } = await script.onTerminal(['top'], keys, [80, 24]);
    expect([code, out.endsWith('\u001b[?25h\u001b[?1049l')]).toEqual([0, true]);
    const last = frames(out).at(-1)!;
    expect(last.slice(3, -1).map((line) => line.split(' ')[0])).toEqual(
      Array.from({ length: 10 }, (_, n) => `node-${n * 100 + 42}`),
    );
  });

  test('says when the service is away, and goes on', async () => {
    let away = false;
    const well = answer;
    answer = (asked) => {
      if (asked.path.startsWith('/api/events')) return { events: 'event: command\ndata: {}\n\n' };
      return away ? { status: 503, error: 'unavailable: the event store is out of reach' } : well(asked);
    };
    const ended = script.onTerminal(
      ['top'],
      [
        ['1000 nodes', 's'],
        ['unavailable: the event store', 'q'],
      ],
    );
    await expect
      .poll(() => service.asked.filter((one) => one === 'GET /api/nodes').length, { timeout: 20_000 })
      .toBeGreaterThanOrEqual(5);
    away = true;
    expect(await ended).toMatchObject({ code: 0 });
  });
});

describe('a plan', () => {
  const steps = [
    ...Array.from({ length: 2_001 }, (_, n) => ({
      action: 'create',
      resource: { type: 'node', name: `n-${n}`, id: null },
      changes: [],
    })),
    ...Array.from({ length: 1_000 }, (_, n) => ({
      action: 'deploy',
      resource: { type: 'l4_chain', name: `c-${n}`, id: null },
      changes: [],
    })),
  ];
  const nodes = Array.from({ length: 998 }, (_, n) => ({
    node_id: idOf(n),
    node_name: `n-${n}`,
    added: ['x'],
    changed: [],
    removed: [],
  }));
  const plan = { steps, nodes, obstacles: [], commands: 7, etag: 'e' };
  const counts = '2,001 to create, 1,000 to deploy, in 7 commands; 998 nodes get a new configuration';
  const applied = {
    apply_id: idOf(1),
    steps: [],
    steps_total: 3_001,
    commands: Array(7).fill({}),
    deployments: [],
    control_psks: [],
    incomplete: null,
  };
  let file: string;
  /** By name. */
  let states: () => Record<string, readonly [status: string, apply: string]>;
  beforeEach(() => {
    file = join(folder, 'fleet.yaml');
    writeFileSync(file, 'svc: 1\n');
    states = () => ({});
    answer = ({ path }) => {
      if (path === '/api/fleet/plan') return { data: plan };
      if (path === '/api/fleet/apply') return { data: applied };
      const query = new URL(path, service.url).searchParams;
      const asked = (field: string, value: string): boolean => (query.get(field) ?? value) === value;
      const found = Object.entries(states())
        .filter(([, [status, state]]) => asked('status', status) && asked('apply', state))
        .map(([name, [status, state]]) => ({
          id: name,
          name,
          status,
          held_by: null,
          apply: { state, errors: state === 'rejected' ? [{ path: 'rules[0]', message: 'port taken' }] : [] },
        }));
      return pieceOf(path, found);
    };
  });

  test('ends with a line that counts, and is asked about after it', async () => {
    const { code, out } = await script.run(['plan', '-f', file]);
    expect([code, out.trimEnd().split('\n').at(-1)]).toEqual([2, counts]);
    const unasked = await script.run(['apply', '-f', file]);
    expect([unasked.code, unasked.out.trimEnd().split('\n').at(-1)]).toEqual([3, counts]);
    if (!terminals) return;
    const declined = await script.onTerminal(['apply', '-f', file], [['Apply this? [y/N]', 'n\n']]);
    expect(declined.code).toBe(1);
  });

  test('is the answer as it is with -o json, and so is its apply', async () => {
    const { code, out } = await script.run(['plan', '-f', file, '-o', 'json']);
    expect([code, JSON.parse(out)]).toEqual([2, plan]);
    const ran = await script.run(['apply', '-f', file, '--yes', '-o', 'json']);
    expect([ran.code, ran.err, JSON.parse(ran.out)]).toEqual([0, '', applied]);
  });

  test('warns on stderr, and so does a create', async () => {
    const warnings = ['relay-1 runs agent 1, which cannot run l3', 'and 30 more like these'];
    const told =
      'svcctl: warning: relay-1 runs agent 1, which cannot run l3\nsvcctl: warning: and 30 more like these\n';
    answer = ({ method }) => ({ data: method === 'POST' ? { ...plan, warnings, id: idOf(1), name: 'net' } : null });
    for (const format of ['text', 'json']) {
      const { code, err } = await script.run(['plan', '-f', file, '-o', format]);
      expect([code, err]).toEqual([2, told]);
    }
    const created = await script.run(['create', 'l3-networks', 'net']);
    expect(created).toEqual({ code: 0, out: `created l3-networks/net (${idOf(1)})\n`, err: told });
  });

  const apply = (...more: string[]) => script.run(['apply', '-f', file, '--yes', '--wait', ...more]);
  const lastTwo = (out: string): string[] => out.trimEnd().split('\n').slice(-2);

  test('is waited for until the nodes that are online have applied it', async () => {
    let asked = 0;
    states = () => ({
      'n-1': ['online', (asked += 1) > 2 ? 'applied' : 'pushed'],
      'n-2': ['online', 'applied'],
      other: ['online', 'none'],
    });
    const { code, out, err } = await apply();
    expect([code, err, lastTwo(out)]).toEqual([0, '', [`applied 7 commands (apply ${idOf(1)})`, 'applied by 2 nodes']]);
    expect(asked).toBeGreaterThan(2);
  });

  test('is waited for although the service is away for a moment, and when it is read in the end', async () => {
    states = () => ({ 'n-1': ['online', 'applied'], 'n-2': ['online', 'applied'] });
    const well = answer;
    let asked = 0;
    answer = (request) => {
      const isAway = request.path.startsWith('/api/nodes?') && [1, 4].includes((asked += 1));
      return isAway ? { status: 503, error: 'unavailable: it starts' } : well(request);
    };
    const { code, out, err } = await apply();
    expect([code, err, lastTwo(out).at(-1)]).toEqual([0, '', 'applied by 2 nodes']);
  });

  test('that a node rejects, or one is offline for, is exit code 1, and says whose', async () => {
    states = () => ({
      'n-1': ['online', 'applied'],
      'n-2': ['online', 'rejected'],
      'n-3': ['pending', 'none'],
      other: ['offline', 'none'],
    });
    const { code, out, err } = await apply();
    expect([code, lastTwo(out)]).toEqual([1, ['n-2  rejected  rules[0]: port taken', 'n-3  offline']]);
    expect(err).toBe('svcctl: 2 of 3 nodes have not applied it: 1 rejected, 1 offline\n');
    const json = await apply('-o', 'json');
    expect([json.code, JSON.parse(json.out)]).toEqual([1, applied]);
  });

  test('is not waited for longer than --timeout says', async () => {
    states = () => ({ 'n-1': ['online', 'pushed'] });
    const { code, err } = await apply('--timeout', '1');
    expect([code, err]).toEqual([1, 'svcctl: 1 of 1 nodes have not applied it: 1 pushed\n']);
    const without = await script.run(['apply', '-f', file, '--yes', '--timeout', '1']);
    expect(without).toMatchObject({ code: 3, err: 'svcctl: --timeout: expected --wait\n' });
  });
});

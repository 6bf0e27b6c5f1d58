/**
 * The simulator as a program, with real processes, sockets and handshakes: against a service of its own, and against a
 * running one, which it leaves as it found it.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePorts } from '../../scripts/stack/process.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import type { Result } from '../../scripts/simulate/result.js';
import { runScript, type ScriptOutcome } from '../support/programs.js';

const simulate = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<ScriptOutcome> =>
  runScript('simulate', args, env);
const resultOf = ({ out }: ScriptOutcome): Result => JSON.parse(out) as Result;

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-test-simulate-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the simulator with a service of its own', () => {
  let outcome: ScriptOutcome;
  let result: Result;
  const report = (): string => join(folder, 'report.html');

  beforeAll(async () => {
    const scenario = '--agents 50 --duration 4 --heartbeat 1 --table 4x2 --changing 0.5 --edit-one 5 --edit-all 2';
    const trouble = '--churn 3 --storm 2 --rejects 0.1 --slow 0.1';
    outcome = await simulate([...`${scenario} ${trouble}`.split(' '), '--json', '--report', report()]);
    result = resultOf(outcome);
  }, 120_000);

  it('ends with all agents converged, those that rejected or read slowly included', () => {
    expect(outcome.err).not.toContain('rror');
    expect(outcome.code).toBe(0);
    expect(result).toMatchObject({ converged: 50, notConverged: [], scenario: { agents: 50 } });
    expect(result.connectSeconds).toBeGreaterThan(0);
    expect(result.edits.failed).toBe(0);
  });

  it('counts rejects, losses and heartbeats', () => {
    expect(result.agents).toMatchObject({ rejecting: 5, slow: 5 });
    expect(result.counts.rejects).toBeGreaterThanOrEqual(5);
    expect(result.counts.losses).toBeGreaterThanOrEqual(50);
    expect(result.counts.answers).toBeGreaterThan(0);
    expect(result.counts.refusals).toEqual({});
    expect(result.counts.closes).toEqual({});
  });

  it('measures each change until the agents have it', () => {
    // How many there are is up to the machine.
    expect(result.applied.one?.count).toBeGreaterThan(0);
    expect(result.applied.all?.count).toBeGreaterThan(0);
    expect(result.lastApplied?.count).toBeGreaterThan(0);
    expect(result.seconds.length).toBeGreaterThanOrEqual(4);
    expect(result.histogram.reduce((sum, { count }) => sum + count, 0)).toBe(
      (result.applied.one?.count ?? 0) + (result.applied.all?.count ?? 0),
    );
  });

  it('tells how long a reconnect storm took', () => {
    expect(result.storms).toMatchObject([{ atSecond: 2 }]);
    expect(result.storms[0]?.cut).toBeGreaterThan(30);
    // No agent comes back before half a second.
    expect(result.storms[0]?.backAfterSeconds).toBeGreaterThan(0.5);
  });

  it('writes a page with plots that needs nothing else', async () => {
    const page = await readFile(report(), 'utf8');
    expect(page).toContain('50 simulated agents');
    expect(page.match(/<path d="M/g)?.length).toBeGreaterThan(4);
    expect(page).not.toMatch(/\bsrc=|<script|<link/);
    expect(page).not.toContain('NaN');
    expect(page).not.toContain('svcpsk1_');
  });
});

describe('the simulator with a running service', () => {
  let service: ServiceProcess;
  let admin: RestClient;
  const password = 'a password of this test';

  beforeAll(async () => {
    service = await prepareService({ dataDir: join(folder, 'running'), env: { SVC_ADMIN_PASSWORD: password } });
    await service.start();
    const { signIn } = await import('../../scripts/stack/rest-client.js');
    admin = await signIn(service.url, 'admin', password);
    await admin.call('POST', '/api/nodes', { name: 'mine' });
  }, 120_000);
  afterAll(() => service.stop());

  const total = async (resource: string): Promise<number> =>
    (await admin.call<{ total: number }>('GET', `/api/${resource}`)).total;
  const run = (...args: string[]): Promise<ScriptOutcome> =>
    simulate(['--url', service.url, '--agents', '6', '--processes', '1', '--duration', '1', ...args], {
      SVC_SIM_PASSWORD: password,
    });

  it('prints a table with plots and what its real relays have carried, and removes what it has created', async () => {
    const changes = ['--edit-one', '10', '--edit-all', '5', '--hops', 'reality,enc'];
    const { code, out, err } = await run('--endpoint', service.controlEndpoint, ...changes);
    expect(err).not.toContain('rror');
    expect(code).toBe(0);
    expect(out).toMatch(/converged in the end +6 of 6 after/);
    expect(out).toMatch(/change of all until applied +p50 [\d.]+ m?s/);
    expect(out).toMatch(/connected +[▁-█]+ +up to 6/);
    for (const kind of ['reality', 'enc'])
      expect(out).toMatch(
        new RegExp(`bytes over ${kind} +[\\d.]*[1-9][\\d.]* MiB there and back, [1-9]\\d* clients served, 0 failed`),
      );
    const resources = ['nodes', 'l4-chains', 'l4-upstreams', 'credentials'];
    expect(await Promise.all(resources.map(total))).toEqual([1, 0, 0, 0]);
  });

  it('ends with code 1 and names nodes if agents do not converge, and leaves all with --keep', async () => {
    const [nobody] = await freePorts(1);
    const endpoint = `http://127.0.0.1:${nobody}`;
    const { code, out } = await run(
      '--endpoint',
      endpoint,
      '--connect-within',
      '2',
      '--settle',
      '1',
      '--json',
      '--keep',
    );
    expect(code).toBe(1);
    const result = JSON.parse(out) as Result;
    expect(result).toMatchObject({ converged: 0, connectSeconds: null, settleSeconds: null });
    expect(result.notConverged).toHaveLength(6);
    expect(result.counts.failedDials).toBeGreaterThan(0);
    expect(await total('nodes')).toBe(7);
  });

  it('says in one sentence if it may not sign in', async () => {
    const refused = await simulate(['--url', service.url], { SVC_SIM_PASSWORD: 'wrong' });
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toMatch(/^--url: cannot sign in to http:\S+ as admin: .*401/);
    expect(await simulate(['--url', service.url])).toMatchObject({
      code: 2,
      err: expect.stringContaining('SVC_SIM_PASSWORD: expected') as string,
    });
  });
});

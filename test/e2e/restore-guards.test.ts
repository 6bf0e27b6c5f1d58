/**
 * Guards after a restore, on embedded stores: a log beside read models of a newer log is refused, and an agent that claims
 * ever higher versions raises its node at most once a minute. See `docs/how-to/restore.md`.
 */
import { once } from 'node:events';
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { startProgram } from '../../scripts/stack/process.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import { eventually } from '../support/eventually.js';
import { runMaintenance } from '../support/programs.js';
import { configRequestOf, createRawAgent, type RawAgent, type RawStream } from '../support/raw-agent.js';
import { append, sessionOpened } from '../support/read-side.js';
import { startSmallSite, type NodeView } from '../support/small-site.js';

test('a restored log is refused beside newer read models until they are rebuilt', async () => {
  const site = await startSmallSite({});
  const [data, copy] = [join(site.folder, 'data'), join(site.folder, 'backup')];
  const command = (name: string, args: readonly string[]): ReturnType<typeof runMaintenance> =>
    runMaintenance(name, args, { SVC_DATA_DIR: data });
  /** What a start that ends by itself says. */
  async function refusal(): Promise<string> {
    const program = startProgram('main', { SVC_DATA_DIR: data, SVC_HTTP_LISTEN_ADDR: '127.0.0.1:0' });
    onTestFinished(() => void program.child.kill('SIGKILL'));
    await once(program.child, 'close');
    expect(program.child.exitCode).toBe(1);
    return program.output();
  }
  try {
    await site.service.stop();
    await cp(join(data, 'log'), copy, { recursive: true });
    await site.start();
    const endpoint = async (): Promise<unknown> =>
      (await site.admin().call<{ items: { endpoint: string }[] }>('GET', '/api/l4-upstreams')).items[0]?.endpoint;
    const before = await endpoint();
    await site.pointAt('second');
    const ahead = (await site.converged())[0].generation;
    await site.service.stop();
    await rm(join(data, 'log'), { recursive: true });
    await cp(copy, join(data, 'log'), { recursive: true });

    expect(await refusal()).toMatch(
      /the read models hold the log up to position \d+, but it ends at \d+.*empty it \(delete .*read, or drop the database\) and start again/,
    );
    // The log grows beyond them, as it did when an instance ran on it without its read models.
    const stores = await openEmbedded({ dataDir: data, clock: systemClock, logger: silentLogger });
    for (let event = 0; event < 30; event += 1) await append(stores.eventStore, sessionOpened('a node'));
    await stores.close();
    expect(await refusal()).toMatch(
      /the read models hold revision \d+ of svc-fleet, which this log lacks: .*empty it \(delete .*read, or drop the database\) and start again/,
    );
    expect(await command('projections:rebuild', ['audit'])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^the read models hold .*: rebuild all of them, not one$/m),
    });
    expect(await command('projections:rebuild', [])).toMatchObject({ code: 0 });
    await site.start();
    expect(await endpoint()).toBe(before);
    await site.throughBecomes('first');
    expect((await site.converged())[0].generation).toBeGreaterThan(ahead);
    await site.pointAt('third');
    await site.service.stop();
    expect(await command('projections:rebuild', ['--check'])).toMatchObject({ code: 0 });
  } finally {
    await site.close();
  }
}, 120_000);

test('a node is raised at most once a minute, even across a restart; until then its sessions end with OVERLOADED', async () => {
  const site = await startSmallSite({});
  const agents: RawAgent[] = [];
  try {
    const made = await site.admin().call<{ id: string; control_psk: string }>('POST', '/api/nodes', { name: 'c' });
    const node = (): Promise<NodeView> => site.admin().call<NodeView>('GET', `/api/nodes/${made.id}`);
    const port = Number(new URL(site.service.controlEndpoint).port);
    /** Opens a session whose agent claims to run `version`. */
    const claim = async (version: number): Promise<RawStream> => {
      const agent = createRawAgent({ host: '127.0.0.1', port, clock: Date }, made.id, made.control_psk);
      agents.push(agent);
      const stream = await agent.connect();
      stream.say(configRequestOf(BigInt(version), Buffer.alloc(32, 1)));
      return stream;
    };
    const tooSoon = async (version: number): Promise<void> => {
      const stream = await claim(version);
      expect(await stream.status).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
      expect(stream.closeHeard()).toMatchObject({ reason: SessionCloseReason.OVERLOADED });
      const { retryAfterMs } = stream.closeHeard()!;
      expect(retryAfterMs).toBeGreaterThan(0);
      expect(retryAfterMs).toBeLessThanOrEqual(60_000);
    };

    const restored = (await node()).generation;
    const stream = await claim(restored + 5);
    await eventually(() => stream.heard.length).toBe(1);
    expect(stream.heard[0]?.$case).toBe('configUpdate');
    const raised = (await node()).generation;
    expect(raised).toBeGreaterThan(restored + 5);
    await tooSoon(raised + 1_000);
    await site.service.kill();
    await site.start();
    await tooSoon(raised + 1_000);
    expect((await node()).generation).toBe(raised);
    expect((await site.admin().call<{ total: number }>('GET', '/api/audit?action=node.refresh')).total).toBe(1);

    // A generation that no log could have given raises nothing, and is shown until an apply is confirmed.
    const absurd = await claim(2 ** 40);
    expect(await absurd.status).toMatchObject({ code: status.FAILED_PRECONDITION });
    await eventually(async () => (await node()).version_conflict_at).not.toBeNull();
    expect((await node()).generation).toBe(raised);
  } finally {
    for (const agent of agents) agent.disconnect();
    await site.close();
  }
});

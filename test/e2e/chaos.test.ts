/**
 * Two instances on one EventStoreDB and one MongoDB take random commands while processes are killed and frozen at random.
 * Afterwards the log, the read models and the agents must agree with the answers that were given.
 *
 * SVC_TEST_CHAOS_SEED chooses other commands and faults, SVC_TEST_CHAOS_SECONDS sets its length.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../scripts/stack/process.js';
import { createRestClient, type RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { checkReadModels } from '../../src/projections/rebuild/check.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import { openStores, type OpenStores } from '../../src/storage/open-stores.js';
import { startEventStoreDbProcess, type EventStoreDbProcess } from '../servers/eventstoredb-process.js';
import { ferretDbBuilt, startFerretDb, type FerretDb } from '../servers/ferretdb-process.js';
import { startBalancer, type Balancer } from '../support/balancer.js';
import { createBook } from './chaos/book.js';
import { startCallers } from './chaos/callers.js';
import { startWatchedAgent, watchInstance, type Watched } from './chaos/generations.js';
import { differences, freshFold, judgeLog, judgeVisible, readFleetLog, readVisible } from './chaos/judgement.js';
import { createRandom } from './chaos/random.js';
import { startTrouble } from './chaos/trouble.js';

const seed = Number(process.env['SVC_TEST_CHAOS_SEED'] ?? 20_261_122);
const troubleMs = 1000 * Number(process.env['SVC_TEST_CHAOS_SECONDS'] ?? 11);
const password = 'a password for the chaos only';
/** Few documents, because FerretDB is slow and checking them would take longer than the load. */
const sizes = { commands: 500, callersPerInstance: 4, agents: 3 };
const patienceMs = 120_000;

describe.skipIf(!ferretDbBuilt())('two instances under random kills and outages', () => {
  const random = createRandom(seed);
  const services: ServiceProcess[] = [];
  const clients: RestClient[] = [];
  const agents: Watched[] = [];
  const agentNodes: { id: string; control_psk: string }[] = [];
  const faults: string[] = [];
  const onFault = (fault: string): void => void faults.push(fault);
  let folder: string;
  let log: EventStoreDbProcess;
  let mongo: FerretDb;
  let balancer: Balancer;
  let env: { SVC_EVENTSTORE_URL: string; SVC_MONGODB_URL: string };

  beforeAll(async () => {
    process.stderr.write(`\nchaos: SVC_TEST_CHAOS_SEED=${seed}\n`);
    folder = await mkdtemp(join(tmpdir(), 'svc-chaos-'));
    [log, mongo] = await Promise.all([startEventStoreDbProcess(), startFerretDb()]);
    env = { SVC_EVENTSTORE_URL: log.url, SVC_MONGODB_URL: `${mongo.url}/svc` };
    const secrets = { SVC_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'), SVC_ADMIN_PASSWORD: password };
    for (const name of ['a', 'b']) {
      services.push(await prepareService({ dataDir: join(folder, name), env: { ...env, ...secrets } }));
    }
    await Promise.all(services.map((service) => service.start()));
    const login = { username: 'admin', password };
    const first = createRestClient(services[0]!.url);
    const { token } = await first.call<{ token: string }>('POST', '/api/auth/login', login);
    // Shorter than the 30 s for which a command may look for its outcome: some calls time out and are repeated elsewhere.
    for (const { url } of services) clients.push(createRestClient(url, token, 8_000));
    await clients[0]!.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1 });
    const ports = services.map(({ controlEndpoint }) => Number(new URL(controlEndpoint).port));
    const turns = random.fork('balancer');
    balancer = await startBalancer(() => (turns.chance(0.5) ? ports : [...ports].reverse()));
    for (let index = 0; index < sizes.agents; index += 1) {
      const node = { name: `agent ${index}`, address: `192.0.2.${index + 1}` };
      agentNodes.push(await clients[0]!.call('POST', '/api/nodes', node));
    }
    for (const node of agentNodes) agents.push(startWatchedAgent(node, balancer.port, onFault));
  }, 120_000);

  afterAll(async () => {
    await Promise.all(agents.map((agent) => agent.stop()));
    await Promise.all(services.map((service) => service.stop()));
    await balancer?.close();
    await mongo?.close();
    await log?.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('keep each acknowledged command once, show what the log says, and lower no generation', async () => {
    const book = createBook();
    const outputs: string[] = [];
    const onEnd = (instance: number, output: string): void => void outputs.push(`== instance ${instance}\n${output}`);
    const endAll = (): void => {
      for (const [index, service] of services.entries()) onEnd(index, service.program().output());
    };
    const watches = clients.map((client, index) => watchInstance(client, `instance ${index}`, 250, onFault));
    const callers = startCallers({
      clients,
      book,
      random,
      agentNodes: agentNodes.map(({ id }) => id),
      callers: sizes.callersPerInstance,
      commands: sizes.commands,
      onFault,
    });
    const trouble = startTrouble({ services, eventStore: log, readStore: mongo, random, onFault, onEnd });
    try {
      await delay(troubleMs);
      await trouble.stop();
      expect(faults).toEqual([]);
      const pids = services.map((service) => service.program().pid);
      await trouble.lastOutage();
      await eventually(
        'enough commands are acknowledged',
        async () => count(book.attempts, 'acknowledged') >= 60 || undefined,
        patienceMs,
      );
      await callers.stop();
      await Promise.all(services.map(ready));
      expect(services.map((service) => (service.program().exited() ? 'ended' : service.program().pid))).toEqual(pids);
      // An instance runs its commands in order: once this one is answered, no earlier one is pending.
      for (const [index, client] of clients.entries()) {
        await eventually(
          `instance ${index} takes commands again`,
          async () => {
            const upstream = { name: `after ${index} ${book.attempts.length}`, endpoint: '127.0.0.1:9' };
            const path = '/api/l4-upstreams';
            const { outcome } = await book.ask(index, client, { method: 'POST', path, body: upstream });
            return outcome === 'acknowledged' ? true : undefined;
          },
          patienceMs,
        );
      }
      for (const watch of watches) await watch.stop();
      await judge(book.attempts);
      expect(faults).toEqual([]);
    } catch (error) {
      endAll();
      const evidence = join(tmpdir(), `svc-chaos-seed-${seed}`);
      await mkdir(evidence, { recursive: true });
      await writeFile(join(evidence, 'instances.log'), outputs.join('\n'));
      await writeFile(join(evidence, 'book.jsonl'), book.attempts.map((attempt) => JSON.stringify(attempt)).join('\n'));
      process.stderr.write(`\nchaos, seed ${seed}:\n${trouble.history.join('\n')}\nlogs and book: ${evidence}\n`);
      throw error;
    } finally {
      await Promise.allSettled([trouble, callers, ...watches].map((one) => one.stop()));
    }
    endAll();
    const lookedFor = outputs.join('').split('outcome of an append is unknown').length - 1;
    process.stderr.write(
      `chaos: ${count(book.attempts, 'acknowledged')} acknowledged, ${count(book.attempts, 'refused')} refused, ` +
        `${count(book.attempts, 'unknown')} unknown; ` +
        `${trouble.history.length} faults, ${lookedFor} appends with an unknown outcome\n`,
    );
  }, 480_000);

  async function ready(service: ServiceProcess): Promise<void> {
    await eventually(
      'the instance is ready again',
      async () => {
        const answer = await fetch(`${service.url}/readyz`, { signal: AbortSignal.timeout(5_000) });
        if (answer.status !== 200) throw new Error(await answer.text());
        return true;
      },
      patienceMs,
    );
  }

  async function judge(attempts: Parameters<typeof judgeLog>[1]): Promise<void> {
    const { SVC_EVENTSTORE_URL: eventStoreUrl, SVC_MONGODB_URL: mongoUrl } = env;
    const open = { dataDir: join(folder, 'judge'), eventStoreUrl, mongoUrl };
    const stores = await openStores({ ...open, clock: systemClock, logger: silentLogger, giveUpMs: patienceMs });
    try {
      const commands = await readFleetLog(stores.eventStore);
      expect(judgeLog(commands, attempts)).toEqual([]);
      const fleet = freshFold(commands);
      await eventually(
        'agents run their newest configuration',
        async () => {
          const late = agentNodes.filter(({ id }, index) => agents[index]?.seen.get(id) !== fleet.generationOf(id));
          if (late.length > 0) throw new Error(`not yet: ${late.map(({ id }) => id).join(', ')}`);
          return true;
        },
        patienceMs,
      );
      const visible = await eventually(
        'both instances show the same',
        async () => {
          const [a, b] = await Promise.all(clients.map(readVisible));
          const differing = differences(a!, b!);
          if (differing.length > 0) throw new Error(differing.join('\n'));
          return a;
        },
        patienceMs,
        500,
      );
      expect(judgeVisible(visible, fleet)).toEqual([]);
      expect(await compareReadModels(stores)).toMatchObject({ differences: [], differenceCount: 0, behind: 0 });
    } finally {
      await stores.close();
    }
  }

  async function compareReadModels({ eventStore, readStore }: OpenStores): ReturnType<typeof checkReadModels> {
    const dataDir = join(folder, 'scratch');
    await mkdir(dataDir);
    const scratch = await openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });
    try {
      return await checkReadModels({
        eventStore,
        readStore,
        scratch: scratch.readStore,
        clock: systemClock,
        logger: silentLogger,
        signal: AbortSignal.timeout(patienceMs),
        onProgress: () => undefined,
      });
    } finally {
      await scratch.close();
    }
  }
});

const count = (attempts: readonly { readonly outcome: string }[], outcome: string): number =>
  attempts.filter((attempt) => attempt.outcome === outcome).length;

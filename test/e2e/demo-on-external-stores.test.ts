/** The demo on EventStoreDB and MongoDB: it runs the same steps and refuses stores that are not empty. */
import { describe, expect, test } from 'vitest';
import { withOwnDatabase, withoutCredentials } from '../../scripts/stack/demo-stores.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openEventStoreDb } from '../../src/storage/eventstoredb/open.js';
import { runScript } from '../support/programs.js';
import { append, nodeCreated } from '../support/read-side.js';
import { externalStores, externalStoresBuilt } from '../support/store-pairs.js';

interface Outcome {
  readonly code: number | null;
  readonly output: string;
}

async function demo(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Outcome> {
  const { code, out, err } = await runScript('demo', args, env);
  return { code, output: out + err };
}

const steps = 15;
const succeeded = (output: string): readonly number[] =>
  [...output.matchAll(/^✔ +(\d+) /gm)].map(([, number]) => Number(number));
const everyStep = Array.from({ length: steps }, (_, index) => index + 1);

describe.skipIf(!externalStoresBuilt())('the demo', () => {
  test('completes every step on the test servers, and names the stores that it uses', async () => {
    const { code, output } = await demo(['--test-servers'], {});
    expect(output).toContain('Every step succeeded');
    expect(code).toBe(0);
    expect(succeeded(output)).toEqual(everyStep);
    const [title] = output.split('✔');
    expect(title).toMatch(/Log: EventStoreDB, esdb:\/\/127\.0\.0\.1:\d+\n/);
    expect(title).toMatch(/Read models: MongoDB, mongodb:\/\/127\.0\.0\.1:\d+\/svc\n/);
  }, 150_000);

  test('refuses the stores that its environment names when they are not empty', async () => {
    const { env, close } = await externalStores.open();
    try {
      const log = openEventStoreDb({ url: env['SVC_EVENTSTORE_URL']!, logger: silentLogger });
      await append(log, nodeCreated('a node'));
      await log.close();
      const { code, output } = await demo([], env);
      expect(code).toBe(1);
      expect(output).toMatch(/^The demo needs empty stores: its log has events in svc-fleet\. Set SVC_EVENTSTORE_URL/);
      expect(output).not.toContain(env['SVC_MASTER_KEY']);
      expect(succeeded(output)).toEqual([]);
    } finally {
      await close();
    }
  }, 150_000);
});

test('the demo answers wrong arguments and settings with one sentence', async () => {
  expect(await demo(['--fast'], {})).toEqual({ code: 2, output: '--fast is not an option of this command\n' });
  const unkeyed = await demo([], { SVC_MONGODB_URL: 'mongodb://user:hidden@127.0.0.1:1' });
  expect(unkeyed.code).toBe(1);
  expect(unkeyed.output).toMatch(/^SVC_MASTER_KEY or SVC_MASTER_KEY_FILE: required/);
  expect(unkeyed.output).not.toContain('hidden');
});

test('the demo prints store URLs without credentials, and its own database does not change the authentication source', () => {
  expect(withoutCredentials('esdb://admin:p@ss@h1:2113,h2:2113?tls=false')).toBe('esdb://h1:2113,h2:2113');
  expect(withoutCredentials('mongodb+srv://u:secret@cluster.example/svc?w=1')).toBe(
    'mongodb+srv://cluster.example/svc',
  );
  expect(withOwnDatabase('mongodb://h:1/named?x=1')).toBe('mongodb://h:1/named?x=1');
  expect(withOwnDatabase('mongodb://h:1')).toMatch(/^mongodb:\/\/h:1\/svc_demo_[0-9a-f]{12}$/);
  expect(withOwnDatabase('mongodb://h:1/?replicaSet=r')).toMatch(/^mongodb:\/\/h:1\/svc_demo_\w+\?replicaSet=r$/);
  expect(withOwnDatabase('mongodb://u:p@h:1')).toMatch(/^mongodb:\/\/u:p@h:1\/svc_demo_\w+\?authSource=admin$/);
  expect(withOwnDatabase('mongodb://u:p@h:1/?authSource=x')).toMatch(/\/svc_demo_\w+\?authSource=x$/);
});

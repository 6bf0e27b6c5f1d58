/** The demo on the stores that its environment names: it runs the same steps and refuses stores that are not empty. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withOwnDatabase, withoutCredentials } from '../../scripts/stack/demo-stores.js';
import { runScript } from '../support/programs.js';
import { externalStores, externalStoresBuilt } from '../support/store-pairs.js';
import type { StorePair } from '../support/store-pairs.js';

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
  let pair: StorePair;
  beforeAll(async () => {
    pair = await externalStores.open();
  });
  afterAll(() => pair.close());

  test('completes every step on the stores that the environment names, and refuses to run there again', async () => {
    // Without a database in the URL, the demo creates one.
    const env: Readonly<Record<string, string>> = {
      ...pair.env,
      SVC_MONGODB_URL: pair.env['SVC_MONGODB_URL']!.replace(/(:\d+)\/[^?]*/, '$1'),
    };
    const first = await demo([], env);
    expect(first.output).toContain('Every step succeeded');
    expect(first.code).toBe(0);
    expect(succeeded(first.output)).toEqual(everyStep);
    const title = first.output.split('✔')[0];
    expect(title).toContain(`Log: EventStoreDB, ${withoutCredentials(env['SVC_EVENTSTORE_URL']!)}\n`);
    expect(title).toMatch(/Read models: MongoDB, mongodb:\/\/[^/]+\/svc_demo_[0-9a-f]{12}\n/);
    expect(first.output).not.toContain(env['SVC_MASTER_KEY']);

    const again = await demo([], env);
    expect(again.code).toBe(1);
    expect(again.output).toMatch(
      /^The demo needs empty stores: its log has events in svc-[a-z-]+\. Set SVC_EVENTSTORE_URL/,
    );
    expect(succeeded(again.output)).toEqual([]);
  }, 150_000);

  test('starts the test servers with --test-servers', async () => {
    const { code, output } = await demo(['--test-servers'], {});
    expect(output).toContain('Log: EventStoreDB, esdb://127.0.0.1:');
    expect(succeeded(output)).toEqual(everyStep);
    expect(code).toBe(0);
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

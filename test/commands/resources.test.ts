/** The handlers of chains, upstreams and settings. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createChainHandlers, createResourceHandlers, createSettingsHandlers } from '../../src/commands/resources.js';
import { randomIds } from '../../src/kernel/ids.js';
import {
  actor,
  createCommandFixture,
  refusalOf,
  type CommandFixture,
  type FleetGateway,
} from '../support/command-fixture.js';
import { createNode, hop, nodeId } from '../support/fleet.js';

let fixture: CommandFixture;
let gateway: FleetGateway;

beforeEach(async () => {
  fixture = await createCommandFixture();
  gateway = await fixture.gateway();
});
afterEach(() => fixture.close());

const context = { actor, requestId: 'r' };

test('a deploy answers the new generations of the nodes in the old and the new definition', async () => {
  const chains = { ...createResourceHandlers(gateway, randomIds).l4_chain, ...createChainHandlers(gateway) };
  for (const name of ['a', 'b', 'c']) await gateway.run(createNode(name));
  await gateway.run({ type: 'RaiseNodeGeneration', id: nodeId('b'), reported: 5000 });
  const definition = { payload: 'tcp', target: { endpoint: '192.0.2.1:80' } } as const;
  const created = await chains.create(context, {
    ...definition,
    name: 'chain',
    description: null,
    enabled: true,
    hops: [hop('a', 80), hop('b', 80)],
  });
  if (created.kind !== 'done') throw new Error(created.kind);
  const { id } = created.result;
  for (const hops of [undefined, [hop('b', 80), hop('c', 80)]]) {
    if (hops !== undefined) await chains.update(context, id, '*', { hops });
    // With commands of others before and after it in the same group.
    const [, deployed] = await Promise.all([
      gateway.run({ type: 'RefreshNodeConfig', id: nodeId('a') }),
      chains.deploy(context, id, undefined),
      gateway.run(createNode(`later ${hops?.length}`)),
    ]);
    if (deployed.kind !== 'done') throw new Error(deployed.kind);
    const fleet = await fixture.fold();
    const names = hops === undefined ? ['a', 'b'] : ['a', 'b', 'c'];
    expect(Object.fromEntries(deployed.result.nodes.map((node) => [node.node_id, node.generation]))).toEqual(
      Object.fromEntries(names.map((name) => [nodeId(name), fleet.generationOf(nodeId(name))])),
    );
    expect(deployed.result.chain).toEqual(fleet.tables.l4_chain.get(id));
  }
});

test('each handler answers with the state right after its own command, not after a later one in its group', async () => {
  const upstreams = createResourceHandlers(gateway, randomIds).l4_upstream;
  const fields = {
    name: 'u',
    endpoint: 'x.example:1',
    server_names: [],
    health_check_interval_ms: 10_000,
    enabled: true,
    tls: null,
    reality: null,
  };
  const created = await upstreams.create(context, fields);
  if (created.kind !== 'done') throw new Error(created.kind);
  expect(created.result).toMatchObject({ ...fields, version: 1 });
  const { id } = created.result;
  const [first, second] = await Promise.all([
    upstreams.update(context, id, [1], { endpoint: 'y.example:2' }),
    upstreams.update(context, id, [2], { enabled: false }),
  ]);
  expect(first).toMatchObject({ result: { endpoint: 'y.example:2', enabled: true, version: 2 } });
  expect(second).toMatchObject({ result: { endpoint: 'y.example:2', enabled: false, version: 3 } });
  expect(await upstreams.remove(context, id, undefined)).toMatchObject({ kind: 'done', result: undefined });
  expect((await refusalOf(upstreams.update(context, id, undefined, { enabled: true }))).code).toBe('not_found');
});

test('an update of the settings answers with the stored settings, changed or not', async () => {
  const settings = createSettingsHandlers(gateway);
  expect(await settings.update(context, undefined, {})).toMatchObject({ events: [], result: { version: 0 } });
  expect(await settings.update(context, undefined, { heartbeat_interval_secs: 20 })).toMatchObject({
    result: { version: 1, heartbeat_interval_secs: 20 },
  });
});

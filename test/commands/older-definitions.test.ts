/** Logs of older releases may hold definitions above today's bound: they are read, shown, made smaller and deleted. */
import { expect, test } from 'vitest';
import { propose } from '../../src/commands/proposal.js';
import { systemContext } from '../../src/commands/system.js';
import { nodeKey } from '../../src/domain/node/node.js';
import { streams } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { limits } from '../../src/kernel/limits.js';
import { bytesOf, createCommandFixture, refusalOf } from '../support/command-fixture.js';
import { emptyChain } from '../../src/domain/log-chain/links.js';
import { headOf, linked } from '../support/log-chain.js';
import { nodeId, updateNode } from '../support/fleet.js';

/** The largest event that a release before the bound wrote. */
const olderEventBytes = 256 * 1024;

test('a definition above the bound is read, cannot be edited without becoming smaller, and can be deleted', async () => {
  const fixture = await createCommandFixture();
  try {
    const labels = Object.fromEntries(Array.from({ length: 31 }, (_, index) => [`${index}`, 'v'.repeat(8 * 1024)]));
    const definition = (name: string) => ({ node_id: nodeId(name), name, description: null, address: null, labels });
    let head = emptyChain;
    for (const [index, name] of ['a', 'b'].entries()) {
      const created = { type: 'NodeCreated', data: definition(name) };
      const { events, bytes } = propose([created], systemContext('older'), fixture.clock, randomIds);
      expect(bytes).toBeLessThan(olderEventBytes);
      expect(JSON.stringify(definition(name)).length).toBeGreaterThan(limits.fleet.definitionBytes);
      const expected = index === 0 ? 'no_stream' : index - 1;
      const own = linked(events, head, streams.fleet, fixture.options.logChain);
      expect((await fixture.stores.eventStore.append(streams.fleet, expected, own)).kind).toBe('appended');
      head = await headOf(fixture.stores.eventStore, streams.fleet, fixture.options.logChain);
    }
    const gateway = await fixture.gateway();
    expect(gateway.fleet.get(nodeKey, nodeId('a'))?.labels).toEqual(labels);
    expect(await refusalOf(gateway.run(updateNode('a', { description: 'x' })))).toMatchObject({
      code: 'payload_too_large',
      message: expect.stringContaining(`${limits.fleet.definitionBytes}`),
    });
    const others = Object.fromEntries(Array.from({ length: 23 }, (_, index) => [`o${index}`, 'w'.repeat(8 * 1024)]));
    await gateway.run(updateNode('a', { labels: others }));
    for (const name of ['a', 'b']) await gateway.run({ type: 'DeleteNode', id: nodeId(name), ifMatch: undefined });
    expect([...gateway.fleet.ids('node')]).toEqual([]);
    expect(bytesOf(gateway.fleet)).toBe(bytesOf(await fixture.fold()));
  } finally {
    await fixture.close();
  }
});

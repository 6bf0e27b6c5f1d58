/** `docs/contract/rest.md#nodes`: the configuration of an earlier generation, on the built service, across a restart. */
import { expect, it } from 'vitest';
import { createChain, createNode, deploy, rawHop } from './support/resources.js';
import { createApi } from './support/rest.js';
import { sharedService } from './support/running.js';

interface Config {
  readonly generation: number;
}

const shared = sharedService();

it('each generation is answered as it was served, also after a restart', async () => {
  const { api } = shared;
  const node = await createNode(api);
  const url = `/api/nodes/${node.id}/config`;
  const served: Config[] = [await api.ok<Config>('GET', url)];
  const chain = await createChain(api, { hops: [rawHop(node.id, 20_001)] });
  for (const port of [20_002, 20_003, 20_004]) {
    await api.ok('PUT', `/api/l4-chains/${chain.id}`, { hops: [rawHop(node.id, port)] });
    await deploy(api, chain);
    served.push(await api.ok<Config>('GET', url));
  }
  expect(new Set(served.map(({ generation }) => generation)).size).toBe(4);
  const check = async (client: typeof api): Promise<void> => {
    for (const then of served) expect(await client.ok('GET', `${url}?generation=${then.generation}`)).toEqual(then);
  };
  await check(api);
  await shared.service.stop();
  await shared.service.start();
  const again = createApi(shared.service.url, api.token);
  await check(again);
  again.close();
});

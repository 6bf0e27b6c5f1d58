/** The worst that a REST caller can send: strange bytes, deep bodies, many requests at once. No 500, no half effects. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createChain, createNode, fresh, port, rawHop } from './support/resources.js';
import type { Chain, NodeData } from './support/resources.js';
import { refused } from './support/rest.js';
import { sharedService } from './support/running.js';

const shared = sharedService();

describe('strange input', () => {
  it('that is deeply nested, unterminated or not UTF-8 is a 400', async () => {
    const { api } = shared;
    for (const raw of [
      '['.repeat(100_000),
      `{"name":"x","labels":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}`,
      Buffer.from([...Buffer.from('{"name":"bad '), 0xff, 0xfe, ...Buffer.from('"}')]),
      Buffer.concat([Buffer.from('{"name":"latin '), Buffer.from([0xe9]), Buffer.from('"}')]),
      '{"name":"a"}{"name":"b"}',
      '{"name":"\u0001"}',
      '{"name":"bad \\ud800"}',
    ]) {
      refused(await api.send('POST', '/api/nodes', { raw }), 400);
    }
  });

  it('such as a byte order mark or an odd number is accepted or a 400, never a 500', async () => {
    const { api } = shared;
    const marked = await api.send('POST', '/api/nodes', { raw: `\ufeff{"name":"${fresh('bom')}"}` });
    expect([201, 400]).toContain(marked.status);
    const node = await createNode(api);
    for (const [number, status] of [
      ['1e3', 201],
      ['2000.0', 201],
      ['1e400', 400],
      ['-0', 400],
      ['80.5', 400],
      ['"80"', 400],
    ] as const) {
      const hop = `{"node_id":"${node.id}","listen_port":${number},"outer":"tcp","security":"raw"}`;
      const raw = `{"name":"${fresh('c')}","payload":"tcp","hops":[${hop}],"target":{"endpoint":"a.b:1"}}`;
      const answer = await api.send('POST', '/api/l4-chains', { raw });
      expect(`${number} ${answer.status}`).toBe(`${number} ${status}`);
    }
  });

  it('as a label key is stored or refused, never lost', async () => {
    const { api } = shared;
    for (const key of ['__proto__', 'constructor', 'a.b', 'hops[0]', ' ', 'ключ', '"']) {
      const raw = `{"name":"${fresh('l')}","labels":{${JSON.stringify(key)}:"v"}}`;
      const answer = await api.send<NodeData>('POST', '/api/nodes', { raw });
      if (answer.status === 201) {
        expect(answer.text).toContain(`${JSON.stringify(key)}:"v"`);
        expect((await api.send('GET', `/api/nodes/${answer.data.id}`)).text).toContain(`${JSON.stringify(key)}:"v"`);
      } else refused(answer, 400, 'labels');
    }
  });

  it('in a header or query is a 400, a 412 or ignored', async () => {
    const { api } = shared;
    const node = await createNode(api);
    for (const tag of ['garbage', '"', '', '5', '"5', `"${'9'.repeat(400)}"`]) {
      const answer = await api.send('PUT', `/api/nodes/${node.id}`, {
        json: { description: 'd' },
        headers: { 'if-match': tag },
      });
      expect([400, 412], `${tag} ${answer.text}`).toContain(answer.status);
    }
    for (const query of ['q=%00', 'q=%ff', `q=${'x'.repeat(5_000)}`, 'page=9007199254740993', 'label=a:b:c', '%3D=1']) {
      expect([200, 400]).toContain((await api.send('GET', `/api/nodes?${query}`)).status);
    }
  });
});

describe('many requests at once', () => {
  const many = <T>(count: number, act: (i: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: count }, (_, i) => act(i)));
  const tally = (answers: readonly { readonly status: number }[]) => answers.map(({ status }) => status).toSorted();

  it('that create the same name: one succeeds', async () => {
    const name = fresh('contested');
    const answers = await many(8, () => shared.api.send('POST', '/api/nodes', { json: { name } }));
    expect(tally(answers)).toEqual([201, ...Array.from({ length: 7 }, () => 409)]);
  });

  it('that edit the same version: one succeeds', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const headers = { 'if-match': `"${node.version}"` };
    const answers = await many(8, (i) =>
      api.send('PUT', `/api/nodes/${node.id}`, { json: { description: `d${i}` }, headers }),
    );
    expect(tally(answers)).toEqual([200, ...Array.from({ length: 7 }, () => 412)]);
  });

  it('that claim the same listener: one succeeds', async () => {
    const { api } = shared;
    const [node, listen] = [await createNode(api), port()];
    const answers = await many(8, () =>
      api.send('POST', '/api/l4-chains', {
        json: { name: fresh('c'), payload: 'tcp', hops: [rawHop(node.id, listen)], target: { endpoint: 'a.b:1' } },
      }),
    );
    expect(tally(answers)).toEqual([201, ...Array.from({ length: 7 }, () => 409)]);
  });

  it('that delete a node and create a chain on it: never both succeed', async () => {
    const { api } = shared;
    for (let i = 0; i < 5; i += 1) {
      const node = await createNode(api);
      const [chain, deletion] = await Promise.all([
        api.send<Chain>('POST', '/api/l4-chains', {
          json: {
            name: `race ${randomUUID()}`,
            payload: 'tcp',
            hops: [rawHop(node.id, port())],
            target: { endpoint: 'a.b:1' },
          },
        }),
        api.send('DELETE', `/api/nodes/${node.id}`),
      ]);
      expect(['201 409', '400 200']).toContain(`${chain.status} ${deletion.status}`);
    }
  });

  it('are each visible in the GET that follows', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const chain = await createChain(api, { hops: [rawHop(node.id, port())] });
    await many(20, async (i) => {
      const made = await createNode(api);
      expect((await api.ok<NodeData>('GET', `/api/nodes/${made.id}`)).id).toBe(made.id);
      const put = await api.send<Chain>('PUT', `/api/l4-chains/${chain.id}`, { json: { description: `d${i}` } });
      expect((await api.ok<Chain>('GET', `/api/l4-chains/${chain.id}`)).version).toBeGreaterThanOrEqual(
        put.data.version,
      );
    });
  });
});

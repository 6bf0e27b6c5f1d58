/** Commands about nodes: what they write, and when they are refused. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { limits } from '../../src/kernel/limits.js';
import * as f from '../support/fleet.js';

const id = f.nodeId('a');
const psk = { fingerprint: 'print', verifier: f.sealed };
const fields = { node_id: id, name: 'a', description: null, address: 'a.example', labels: {} };

describe('creating a node', () => {
  it('with a PSK writes two events in one command', () => {
    f.given()
      .when(f.createNode('a', { labels: { site: 'x' }, psk }))
      .thenEvents(
        { type: 'NodeCreated', data: { ...fields, labels: { site: 'x' } } },
        { type: 'NodePskIssued', data: { node_id: id, ...psk } },
      );
  });

  it('without a PSK writes one event', () => {
    const fleet = f.given().when(f.createNode('a')).thenEvents({ type: 'NodeCreated', data: fields });
    expect(fleet.tables.node.get(id)).toMatchObject({ version: 1, psk: null, public_ipv4: null, generation_offset: 0 });
    expect(fleet.generationOf(id)).toBe(1);
  });

  it.each([
    ['Edge', 'eDGE'],
    ['caf\u00e9', 'cafe\u0301'],
    ['\u00c9', 'e\u0301'],
  ])('is refused when %j exists and the new name is %j', (taken, name) => {
    const other = f.createNode(taken);
    f.given(other)
      .when({ ...f.createNode('b'), name })
      .thenRefused('conflict', 'name:', `"${name}"`, other.id);
  });

  it('can use the name of a deleted or renamed node, or of a resource of another type', () => {
    const gone = { ...f.createNode('new'), name: 'A' };
    f.given(f.createNode('a'), { type: 'DeleteNode', id, ifMatch: undefined }).when(gone).thenAccepted();
    f.given(f.createNode('a'), f.updateNode('a', { name: 'other' }))
      .when(gone)
      .thenAccepted();
    f.given(f.createUpstream('a')).when(gone).thenAccepted();
  });
});

describe('updating a node', () => {
  it('writes each changed field with both values, each label as a field of its own', () => {
    f.given(f.createNode('a', { labels: { gone: 'x', kept: 'y', moved: '1' } }))
      .when(
        f.updateNode('a', {
          description: 'words',
          address: 'a.example',
          labels: { kept: 'y', moved: '2', added: 'z' },
        }),
      )
      .thenEvents({
        type: 'NodeUpdated',
        data: {
          node_id: id,
          changes: {
            description: { from: null, to: 'words' },
            'labels.added': { from: null, to: 'z' },
            'labels.gone': { from: 'x', to: null },
            'labels.moved': { from: '1', to: '2' },
          },
        },
      });
  });

  it.each(['constructor', '__proto__'])('accepts the label key %s', (key) => {
    const labels = Object.fromEntries([[key, 'x']]);
    const scenario = f.given(f.createNode('a'));
    scenario.when(f.updateNode('a', { labels })).thenEvents({
      type: 'NodeUpdated',
      data: { node_id: id, changes: { [`labels.${key}`]: { from: null, to: 'x' } } },
    });
    expect(Object.entries(scenario.fleet.tables.node.get(id)!.labels)).toEqual([[key, 'x']]);
    scenario.when(f.updateNode('a', { labels: {} })).thenEvents({
      type: 'NodeUpdated',
      data: { node_id: id, changes: { [`labels.${key}`]: { from: 'x', to: null } } },
    });
    expect(scenario.fleet.tables.node.get(id)!.labels).toEqual({});
  });

  it('to its current values writes nothing', () => {
    const { when } = f.given(f.createNode('a', { labels: { b: '1', a: '2' } }));
    when(
      f.updateNode('a', { name: 'a', description: null, address: 'a.example', labels: { a: '2', b: '1' } }),
    ).thenNothing();
    when(f.updateNode('a', {})).thenNothing();
  });

  it('checks If-Match right after the existence of the node', () => {
    const { when } = f.given(f.createNode('a'), f.createNode('b'), f.updateNode('a', { description: 'v2' }));
    when(f.updateNode('a', { ifMatch: [1], name: 'b' })).thenRefused('precondition_failed', 'If-Match', '"2"', '"1"');
    when(f.updateNode('a', { ifMatch: [], name: 'c' })).thenRefused('precondition_failed', 'If-Match');
    when(f.updateNode('nowhere', { ifMatch: [1] })).thenRefused('not_found');
    when(f.updateNode('a', { ifMatch: [1, 2], description: 'v3' })).thenAccepted();
    when(f.updateNode('a', { ifMatch: '*', description: 'v4' })).thenAccepted();
    when({ type: 'DeleteNode', id, ifMatch: [3] }).thenRefused('precondition_failed', '"4"');
  });
});

describe('a node that a live chain dials', () => {
  const dialled = (): f.Scenario =>
    f.given(
      f.createNode('in', { address: null }),
      f.createNode('a'),
      f.createChain('one', [f.hop('in', 80), f.hop('a', 80)]),
      f.deployChain('one'),
    );
  const report = (public_ipv4: string | null, public_ipv6: string | null = null) =>
    ({ type: 'ReportNodeAddress', id, public_ipv4, public_ipv6 }) as const;

  it('cannot lose its last address; the refusal lists the diallers', () => {
    const { when } = dialled();
    when(f.updateNode('a', { address: null })).thenRefused(
      'conflict',
      'address:',
      'node "a"',
      `l4_chain "one" (${f.chainId('one')})`,
    );
    when(report('203.0.113.1')).thenAccepted();
    when(f.updateNode('a', { address: null })).thenAccepted();
    when(report(null)).thenRefused('conflict', 'node "a"', 'l4_chain "one"');
    when(report(null, '2001:db8::1')).thenAccepted();
  });

  it('needs no address when the hop has a dial_addr, the chain is disabled, or it is the first hop', () => {
    const withDialAddr = dialled();
    withDialAddr
      .when(f.updateChain('one', { hops: [f.hop('in', 80), f.hop('a', 80, { dial_addr: 'x.example' })] }))
      .thenAccepted();
    withDialAddr.when(f.updateNode('a', { address: null })).thenRefused('conflict', 'l4_chain "one"');
    withDialAddr.when(f.deployChain('one')).thenAccepted();
    withDialAddr.when(f.updateNode('a', { address: null })).thenAccepted();

    const off = dialled();
    off.when(f.updateChain('one', { enabled: false })).thenAccepted();
    off.when(f.updateNode('a', { address: null })).thenAccepted();
    off.when(f.updateChain('one', { enabled: true })).thenRefused('conflict', 'hops[1].node_id', 'node "a"', 'address');
    off.when(f.updateNode('a', { address: 'back.example' })).thenAccepted();
    off.when(f.updateChain('one', { enabled: true })).thenAccepted();

    const first = f.given(f.createNode('a'), f.createChain('one', [f.hop('a', 80)]), f.deployChain('one'));
    first.when(f.updateNode('a', { address: null })).thenAccepted();
  });
});

describe('deleting a node', () => {
  it('writes everything that an undo restores', () => {
    const override = { node_id: id, multiplex: true, multiplex_port: 1000 };
    const { fleet, when } = f.given(
      f.createNode('a', { labels: { site: 'x' }, psk }),
      f.settings({ nodes: [override] }),
      f.savePolicy('a', 443, ['tls']),
      f.savePolicy('a', 53, ['raw', 'noise'], { transport: 'udp' }),
    );
    when({ type: 'DeleteNode', id, ifMatch: undefined }).thenEvents({
      type: 'NodeDeleted',
      data: {
        ...fields,
        labels: { site: 'x' },
        override: { multiplex: true, multiplex_port: 1000 },
        policies: [
          {
            transport: 'tcp',
            listen_addr: '0.0.0.0',
            listen_port: 443,
            priority_order: ['tls', 'reality', 'noise', 'raw'],
          },
          {
            transport: 'udp',
            listen_addr: '0.0.0.0',
            listen_port: 53,
            priority_order: ['raw', 'noise', 'reality', 'tls'],
          },
        ],
        generation_offset: 0,
      },
    });
    expect(fleet.singletons.connectivity.value).toMatchObject({ nodes: {}, version: 1 });
  });

  it('is refused while only a deployed definition refers to it, and the refusal lists all referrers', () => {
    const { when } = f.given(
      f.createNode('a'),
      f.createNode('b'),
      f.createChain('one', [f.hop('a', 80)]),
      f.deployChain('one'),
      f.updateChain('one', { hops: [f.hop('b', 80)] }),
      f.createChain('two', [f.hop('a', 81)]),
    );
    when({ type: 'DeleteNode', id, ifMatch: undefined }).thenRefused('conflict', 'l4_chain "one"', 'l4_chain "two"');
    when(f.deployChain('one')).thenAccepted();
    when({ type: 'DeleteChain', id: f.chainId('two'), ifMatch: undefined }).thenAccepted();
    when({ type: 'DeleteNode', id, ifMatch: undefined }).thenAccepted();
    when({ type: 'DeleteNode', id, ifMatch: undefined }).thenRefused('not_found', id);
  });
});

describe('commands about agents', () => {
  it('an unchanged reported address writes nothing; a changed one writes both addresses with both values', () => {
    const { when } = f.given(f.createNode('a'));
    when({ type: 'ReportNodeAddress', id, public_ipv4: null, public_ipv6: null }).thenNothing();
    when({ type: 'ReportNodeAddress', id, public_ipv4: '203.0.113.1', public_ipv6: null }).thenEvents({
      type: 'NodeReportedAddressChanged',
      data: { node_id: id, public_ipv4: { from: null, to: '203.0.113.1' }, public_ipv6: { from: null, to: null } },
    });
    when({ type: 'ReportNodeAddress', id, public_ipv4: '203.0.113.1', public_ipv6: null }).thenNothing();
  });

  it('a generation raise writes an offset, which never falls', () => {
    const { fleet, when } = f.given(f.createNode('a'));
    when({ type: 'RaiseNodeGeneration', id, reported: 500 }).thenEvents({
      type: 'NodeGenerationRaised',
      data: { node_id: id, offset: { from: 0, to: 500 } },
    });
    expect(fleet.generationOf(id)).toBe(502);
    when({ type: 'RaiseNodeGeneration', id, reported: 502 }).thenAccepted();
    expect(fleet.generationOf(id)).toBeGreaterThan(502);
    const offset = fleet.tables.node.get(id)!.generation_offset;
    when({ type: 'RaiseNodeGeneration', id, reported: 3 }).thenAccepted();
    expect(fleet.tables.node.get(id)!.generation_offset).toBe(offset);
  });

  it('a generation raise is refused when no generation is left above the reported one', () => {
    const { fleet, when } = f.given(f.createNode('a'));
    const reported = limits.fleet.generationMax;
    when({ type: 'RaiseNodeGeneration', id, reported }).thenRefused('conflict', String(reported));
    when({ type: 'RaiseNodeGeneration', id, reported: reported - 2 }).thenAccepted();
    expect(fleet.generationOf(id)).toBe(reported);
  });

  it('at most 64 commands wait for its agent; those that have expired leave room', () => {
    const { when } = f.given(f.createNode('a'));
    const queue = (minute: number) =>
      ({
        type: 'QueueNodeCommand',
        id,
        command: 'RUN_DIAGNOSTICS',
        queued_at: new Date(minute * 60_000).toISOString(),
        expires_at: new Date((minute + 10) * 60_000).toISOString(),
      }) as const;
    for (let index = 0; index < 64; index += 1) when(queue(0)).thenAccepted();
    when(queue(9)).thenRefused('conflict', 'node "a"', '64');
    when(queue(10)).thenAccepted();
    for (let index = 1; index < 64; index += 1) when(queue(10)).thenAccepted();
    when(queue(11)).thenRefused('conflict', 'node "a"', '64');
  });

  it.each([
    { type: 'IssueNodePsk', id, ...psk },
    { type: 'RefreshNodeConfig', id },
    { type: 'ReportNodeAddress', id, public_ipv4: null, public_ipv6: null },
    { type: 'RaiseNodeGeneration', id, reported: 1 },
    { type: 'DeleteNode', id, ifMatch: undefined },
  ] as const)('$type of an unknown node is refused', (command) => {
    f.given().when(command).thenRefused('not_found', id);
  });
});

describe('labels of several nodes', () => {
  const keys = ['a', 'b', 'constructor', '__proto__'];
  const labels = fc
    .array(fc.tuple(fc.constantFrom(...keys), fc.constantFrom('x', 'y')))
    .map((pairs) => Object.fromEntries(pairs));

  it('end as they would one by one, in one command with an event for each node that changes', () => {
    fc.assert(
      fc.property(
        fc.array(labels, { minLength: 1, maxLength: 6 }),
        labels,
        fc.subarray(keys),
        (before, set, removed) => {
          const remove = removed.filter((key) => !Object.hasOwn(set, key));
          const created = before.map((own, index) => f.createNode(`n${index}`, { labels: own }));
          const [together, apart] = [f.given(...created), f.given(...created)];
          for (const { id: one, name, labels: own } of created) {
            const kept = Object.entries(own).filter(([key]) => !remove.includes(key));
            apart
              .when(f.updateNode(name, { labels: Object.fromEntries([...kept, ...Object.entries(set)]) }))
              .thenAccepted();
            expect(apart.fleet.tables.node.has(one)).toBe(true);
          }
          const ids = created.map((one) => one.id);
          const { performed } = together.when({ type: 'LabelNodes', ids, set, remove });
          expect(performed.kind).not.toBe('refused');
          const seen = ({ fleet }: f.Scenario) =>
            ids.map((one) => fleet.tables.node.get(one)!).map(({ labels: own, version }) => [own, version]);
          expect(seen(together)).toEqual(seen(apart));
          if (performed.kind === 'written') expect([...performed.touched]).toEqual([]);
        },
      ),
    );
  });
});

/** Links are checked on what is stored, so that a release with other shapes of events still proves an older log. */
import { expect, it, vi } from 'vitest';
import type * as upstreams from '../../src/domain/upstream/upstream.js';
import { emptyChain } from '../../src/domain/log-chain/links.js';
import { readCommand } from '../../src/domain/log/upcast.js';
import { streams, type RecordedEvent } from '../../src/kernel/event.js';
import { createCommandFixture } from '../support/command-fixture.js';
import { createNode, createUpstream, upstreamId } from '../support/fleet.js';
import { headOf, linked, testLogChain } from '../support/log-chain.js';
import { planned, proposedEvents } from '../support/read-side.js';

// A release whose upstreams have another schema: what is stored is upcast before it is folded.
vi.mock('../../src/domain/upstream/upstream.js', async (original) => {
  const { l4Upstream, ...others } = await original<typeof upstreams>();
  const upcasters = {
    1: (event: RecordedEvent) => ({ ...event, data: { ...event.data, endpoint: 'upcast.example:1' } }),
  };
  const UpstreamCreated = { ...l4Upstream.events.UpstreamCreated, schemaVersion: 2, upcasters };
  return { ...others, l4Upstream: { ...l4Upstream, events: { ...l4Upstream.events, UpstreamCreated } } };
});

it('an event of an older schema is upcast only after its link has been checked', async () => {
  const fixture = await createCommandFixture();
  const chain = testLogChain();
  try {
    const gateway = await fixture.gateway({ logChain: chain });
    const { type: _type, id, ...fields } = createUpstream('u') as { type: string; id: string };
    const event = { type: 'UpstreamCreated', data: { upstream_id: id, ...fields } };
    const stored = proposedEvents(planned(streams.fleet, [event], { schema: 1 }));
    const head = await headOf(fixture.stores.eventStore, streams.fleet, chain);
    await fixture.stores.eventStore.append(streams.fleet, 'no_stream', linked(stored, head, streams.fleet, chain));
    await gateway.run(createNode('n'));

    expect((await fixture.fold()).tables.l4_upstream.get(upstreamId('u'))?.endpoint).toBe('upcast.example:1');
    expect(gateway.fleet.tables.l4_upstream.get(upstreamId('u'))?.endpoint).toBe('upcast.example:1');
    // The upcast event itself would not fit.
    const [first] = (await fixture.log()).map((recorded) => ({
      stream: streams.fleet,
      events: [recorded] as const,
    }));
    testLogChain().follow(emptyChain, first!);
    expect(() => testLogChain().follow(emptyChain, readCommand(first!))).toThrow(/it was altered/);
  } finally {
    await fixture.close();
  }
});

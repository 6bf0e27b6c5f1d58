/** Commands about upstreams: what they write, and when they are refused. */
import { describe, expect, it } from 'vitest';
import { l4Upstream } from '../../src/domain/upstream/upstream.js';
import * as f from '../support/fleet.js';

const id = f.upstreamId('up');
const fields = {
  name: 'up',
  endpoint: 'up.example:443',
  server_names: [],
  health_check_interval_ms: 10_000,
  enabled: true,
  tls: null,
  reality: null,
};
const remove = { type: 'DeleteUpstream', id, ifMatch: undefined } as const;
const intoUp = { target: { upstream_id: id } };

describe('an upstream', () => {
  it('is created with all its fields', () => {
    const fleet = f
      .given()
      .when(f.createUpstream('up'))
      .thenEvents({ type: 'UpstreamCreated', data: { upstream_id: id, ...fields } });
    expect(fleet.tables.l4_upstream.get(id)).toMatchObject({ ...fields, id, version: 1 });
  });

  it('is updated by its changed fields', () => {
    f.given(f.createUpstream('up'))
      .when(
        f.updateUpstream('up', {
          endpoint: 'up.example:443',
          enabled: false,
          server_names: ['s.example'],
          tls: f.upstreamTls,
        }),
      )
      .thenEvents({
        type: 'UpstreamUpdated',
        data: {
          upstream_id: id,
          changes: {
            enabled: { from: true, to: false },
            server_names: { from: [], to: ['s.example'] },
            tls: { from: null, to: f.upstreamTls },
          },
        },
      });
  });

  it('is deleted with all its fields', () => {
    f.given(f.createUpstream('up'))
      .when(remove)
      .thenEvents({ type: 'UpstreamDeleted', data: { upstream_id: id, ...fields } });
  });

  it('cannot be deleted while a chain ends in it, by its current or deployed definition, enabled or not', () => {
    const { when } = f.given(
      f.createNode('a'),
      f.createUpstream('up'),
      f.createChain('one', [f.hop('a', 80)], { ...intoUp, enabled: false }),
    );
    when(remove).thenRefused('conflict', 'l4_upstream "up"', `l4_chain "one" (${f.chainId('one')})`);
    when(f.updateChain('one', { enabled: true })).thenAccepted();
    when(f.deployChain('one')).thenAccepted();
    when(f.updateChain('one', { target: { endpoint: '192.0.2.1:80' } })).thenAccepted();
    when(remove).thenRefused('conflict', 'l4_chain "one"');
    when(f.deployChain('one')).thenAccepted();
    when(remove).thenAccepted();
  });
});

describe('an upstream that is a REALITY server', () => {
  const reality = { outer: 'tcp', public_key: f.publicKey('r'), server_name: 'r.example', short_id: 'a1' } as const;

  it('is never one with tls', () => {
    const { when } = f.given(f.createUpstream('up', { reality }));
    when(f.updateUpstream('up', { tls: f.upstreamTls })).thenRefused('invalid_request', 'tls and reality');
    when(f.updateUpstream('up', { tls: f.upstreamTls, reality: null })).thenAccepted();
    when(f.createUpstream('both', { tls: f.upstreamTls, reality })).thenRefused('invalid_request', 'tls and reality');
  });

  it('ends a udp chain over quic alone', () => {
    const { when } = f.given(f.createNode('a'), f.createUpstream('up', { reality }));
    const create = f.createChain('one', [f.udpHop('a', 80)], intoUp);
    when(create).thenRefused('invalid_request', 'target.upstream_id', '"up"', 'reality over tcp');
    when(f.updateUpstream('up', { reality: { ...reality, outer: 'quic' } })).thenAccepted();
    when(create).thenAccepted();
    when(f.updateUpstream('up', { reality })).thenRefused('conflict', 'reality.outer:', 'l4_chain "one"');
    when(f.updateUpstream('up', { reality: null })).thenAccepted();
  });

  it('is none in the event of an earlier release, which did not know REALITY servers', () => {
    const { reality: _, ...known } = fields;
    const meta = { at: '2020-01-01T00:00:00.000Z', commandId: 'c', actor: { type: 'system', id: null, name: null } };
    const created = { type: 'UpstreamCreated', data: { upstream_id: id, ...known } };
    expect(l4Upstream.evolve(undefined, created as never, meta as never)).toMatchObject({ ...known, reality: null });
  });
});

describe('an upstream with tls', () => {
  it('cannot be the target of a udp chain', () => {
    const { when } = f.given(f.createNode('a'), f.createUpstream('up', { tls: f.upstreamTls }));
    when(f.createChain('one', [f.udpHop('a', 80)], intoUp)).thenRefused(
      'invalid_request',
      'target.upstream_id',
      '"up"',
      'tls',
    );
    when(f.createChain('one', [f.hop('a', 80)], intoUp)).thenAccepted();
    when(f.updateChain('one', { payload: 'udp', hops: [f.udpHop('a', 80)] })).thenRefused(
      'invalid_request',
      'target.upstream_id',
    );
  });

  it('cannot result from an edit while a udp chain ends in the upstream, even if only deployed or disabled', () => {
    const { when } = f.given(
      f.createNode('a'),
      f.createUpstream('up'),
      f.createChain('one', [f.udpHop('a', 80)], intoUp),
    );
    const secure = f.updateUpstream('up', { tls: f.upstreamTls });
    when(secure).thenRefused('conflict', 'tls:', 'l4_chain "one"');
    when(f.deployChain('one')).thenAccepted();
    when(f.updateChain('one', { payload: 'tcp', hops: [f.hop('a', 80)] })).thenAccepted();
    when(f.updateChain('one', { enabled: false })).thenAccepted();
    when(secure).thenRefused('conflict', 'tls:', 'l4_chain "one"');
    when(f.updateChain('one', { enabled: true })).thenAccepted();
    when(f.deployChain('one')).thenAccepted();
    when(secure).thenAccepted();
  });
});

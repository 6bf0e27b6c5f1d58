/** `docs/contract/rest.md#dashboard`, `matters`: from what is not well to what needs somebody. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { healthCauses, type Cause } from '../../src/domain/chain/health.js';
import {
  mattersOf,
  nothingUnwell,
  unknownForMs,
  type Matter,
  type Unwell,
  type UnwellChain,
} from '../../src/domain/matters/matters.js';
import { matterKinds, severities } from '../../src/domain/matters/kinds.js';
import { runSync } from '../../src/kernel/pieces.js';

const now = Date.UTC(2026, 0, 1);
const mattersFor = (unwell: Partial<Unwell>): readonly Matter[] =>
  runSync(mattersOf({ ...nothingUnwell(), ...unwell }, now));
const named = (name: string) => ({ id: `id of ${name}`, name });
const reasoned = (name: string) => ({ ...named(name), reason: `reason of ${name}` });
const nodeCause = (kind: Cause['kind'], node: string, detail?: string): Cause => ({
  kind,
  type: 'node',
  resource: named(node),
  ...(detail === undefined ? {} : { detail }),
});
const upstreamCause = (name: string): Cause => ({
  kind: 'upstream_unhealthy',
  type: 'l4_upstream',
  resource: named(name),
});
const chain = (name: string, cause: Cause | null, state: UnwellChain['state'] = 'down'): UnwellChain => ({
  ...reasoned(name),
  state,
  cause,
  since: now,
});
const listener = (node: string, where = 'tcp 0.0.0.0:443', state = 'missing') => ({
  node: named(node),
  listener: where,
  state,
});
/** What a reader sees of each: its kind, its cause, how many, and the sentence. */
const shown = (unwell: Partial<Unwell>) =>
  mattersFor(unwell).map(({ kind, cause, count, sentence }) => [kind, cause, count, sentence]);

describe('matters', () => {
  it('are none when all is well', () => {
    expect(mattersFor({})).toEqual([]);
  });

  it('are found in pieces, one for each kind and cause', () => {
    const chains = [chain('a', upstreamCause('web')), chain('b', null), chain('c', upstreamCause('web'))];
    const pieces = mattersOf({ ...nothingUnwell(), chains, offlineNodes: [reasoned('n')] }, now);
    let pauses = 0;
    while (pieces.next().done !== true) pauses += 1;
    expect(pauses).toBe(3);
  });

  it('put chains of one cause together, and name the cause', () => {
    const chains = ['c2', 'c1', 'c3'].map((name) => chain(name, upstreamCause('web')));
    const [matter, ...others] = mattersFor({ chains, unhealthyUpstreams: [reasoned('web')] });
    expect(others).toEqual([]);
    expect(matter).toMatchObject({
      severity: 'down',
      kind: 'chain_down',
      cause: 'upstream_unhealthy',
      causedBy: { resource: { name: 'web' } },
      count: 3,
      sentence: '3 chains are down because upstream "web" is unhealthy',
      resources: ['c1', 'c2', 'c3'].map((name) => ({ type: 'l4_chain', ...reasoned(name) })),
    });
  });

  it('tell causes and resources apart, the largest first', () => {
    const chains = [
      chain('a', nodeCause('node_offline', 'n1')),
      chain('b', nodeCause('node_offline', 'n2')),
      chain('c', nodeCause('node_offline', 'n2')),
      chain('d', nodeCause('listener_missing', 'n3', 'tcp 0.0.0.0:1')),
      chain('e', nodeCause('listener_missing', 'n3', 'tcp 0.0.0.0:2')),
      chain('f', nodeCause('target_unusable', 'n3', 'tcp 0.0.0.0:3')),
      chain('g', { ...upstreamCause('web'), kind: 'upstream_disabled' }),
      chain('h', nodeCause('link_loss', 'n3', 'n4')),
      chain('i', nodeCause('link_loss', 'n3', 'n4'), 'degraded'),
      chain('j', nodeCause('apply_behind', 'n5'), 'degraded'),
    ];
    expect(shown({ chains })).toEqual([
      ['chain_down', 'node_offline', 2, '2 chains are down because node "n2" is offline'],
      ['chain_down', 'node_offline', 1, 'Chain "a" is down because node "n1" is offline'],
      [
        'chain_down',
        'listener_missing',
        1,
        'Chain "d" is down because listener tcp 0.0.0.0:1 of node "n3" does not run',
      ],
      [
        'chain_down',
        'listener_missing',
        1,
        'Chain "e" is down because listener tcp 0.0.0.0:2 of node "n3" does not run',
      ],
      [
        'chain_down',
        'target_unusable',
        1,
        'Chain "f" is down because node "n3" cannot use the REALITY target of tcp 0.0.0.0:3',
      ],
      ['chain_down', 'upstream_disabled', 1, 'Chain "g" is down because upstream "web" is disabled'],
      ['chain_down', 'link_loss', 1, 'Chain "h" is down because the link from "n3" to "n4" loses too much'],
      ['chain_degraded', 'link_loss', 1, 'Chain "i" is degraded because the link from "n3" to "n4" loses too much'],
      [
        'chain_degraded',
        'apply_behind',
        1,
        'Chain "j" is degraded because node "n5" has not applied its newest configuration yet',
      ],
    ]);
  });

  it('leave out what is the cause of a chain, and name what is not', () => {
    const unwell = {
      chains: [
        chain('a', nodeCause('node_offline', 'n1')),
        chain('b', nodeCause('node_rejected', 'n2')),
        chain('c', nodeCause('listener_missing', 'n3', 'tcp 0.0.0.0:443')),
      ],
      offlineNodes: [reasoned('n1'), reasoned('other 1')],
      rejectingNodes: [reasoned('n2'), reasoned('other 2')],
      // What n2 has rejected it does not run either.
      missingListeners: [listener('n3'), listener('n3', 'udp 0.0.0.0:53', 'failed'), listener('n2')],
      unhealthyUpstreams: [reasoned('spare')],
    };
    expect(mattersFor(unwell).slice(3)).toMatchObject([
      { kind: 'node_offline', severity: 'degraded', cause: null, sentence: 'Node "other 1" is offline' },
      { kind: 'node_rejected', sentence: 'Node "other 2" has rejected the newest configuration' },
      { kind: 'listener_missing', resources: [{ name: 'n3', reason: 'udp 0.0.0.0:53 is failed' }] },
      { kind: 'upstream_unhealthy', sentence: 'Upstream "spare" is unhealthy' },
    ]);
  });

  it('are of an unknown chain once nothing has been known of it for a minute', () => {
    const unknown = { ...chain('a', null, 'unknown'), since: now - unknownForMs + 1 };
    expect(mattersFor({ chains: [unknown] })).toEqual([]);
    expect(shown({ chains: [{ ...unknown, since: now - unknownForMs }] })).toEqual([
      ['chain_unknown', null, 1, 'Nobody knows whether chain "a" works: reason of a'],
    ]);
  });

  it('come by severity, and then by kind', () => {
    const matters = mattersFor({
      modifiedChains: [reasoned('m')],
      unexpectedListeners: [listener('n1', 'tcp 0.0.0.0:9', 'running'), listener('n1', 'tcp 0.0.0.0:10', 'running')],
      endingCertificates: [reasoned('soon')],
      stoppedWebhooks: [reasoned('hook')],
      endedCertificates: [reasoned('old')],
      offlineNodes: [reasoned('n1'), reasoned('n2')],
    });
    expect(matters.map(({ severity, sentence }) => [severity, sentence])).toEqual([
      ['down', 'Certificate "old" has ended and is in use'],
      ['degraded', '2 nodes are offline'],
      ['degraded', 'Webhook "hook" has stopped'],
      ['soon', 'Certificate "soon" ends within 30 days'],
      ['soon', 'Chain "m" was edited and not deployed since'],
      ['soon', 'Node "n1": tcp 0.0.0.0:9 is not deployed, and 1 more'],
    ]);
  });

  it('sum up what has very many causes', () => {
    const chains = Array.from({ length: 60 }, (_, index) => {
      const node = `n${String(Math.floor(index / 3)).padStart(2, '0')}`;
      return chain(`c${index}`, nodeCause('node_offline', node));
    });
    const matters = mattersFor({
      chains,
      offlineNodes: Array.from({ length: 20 }, (_, at) => reasoned(`n${String(at).padStart(2, '0')}`)),
    });
    expect(matters).toHaveLength(11);
    expect(matters.map(({ count }) => count)).toEqual([30, ...Array.from({ length: 10 }, () => 3)]);
    expect(matters[0]?.sentence).toBe('30 chains are down because 10 more nodes are offline');
    expect(matters[0]?.resources).toHaveLength(20);
  });

  it('name eleven causes, for the eleventh alone would be no shorter, and ten of twelve', () => {
    const alone = (count: number) => {
      const chains = Array.from({ length: count }, (_, index) => chain(`c${index}`, upstreamCause(`u${index}`)));
      return mattersFor({ chains }).filter(({ causedBy }) => causedBy !== null).length;
    };
    expect([10, 11, 12].map(alone)).toEqual([10, 11, 10]);
  });

  describe('of any fleet', () => {
    const name = fc.constantFrom(...Array.from({ length: 30 }, (_, index) => `r${index}`));
    const detailed = new Set<string>(['listener_missing', 'target_unusable', 'link_loss']);
    const cause = fc.tuple(fc.constantFrom(...healthCauses), name).map(([kind, of]): Cause => ({
      ...nodeCause(kind, of, detailed.has(kind) ? 'a detail' : undefined),
      type: kind.startsWith('upstream') ? 'l4_upstream' : 'node',
    }));
    const unwellChain = fc
      .tuple(name, fc.constantFrom('down', 'degraded', 'unknown'), cause, fc.boolean())
      .map(([of, state, why, old]) => ({
        ...chain(of, state === 'unknown' ? null : why, state as UnwellChain['state']),
        since: old ? now - unknownForMs : now,
      }));
    const some = fc.uniqueArray(name.map(reasoned), { selector: ({ id }) => id });
    const listeners = fc.array(fc.tuple(name, fc.nat(3)).map(([of, port]) => listener(of, `tcp 0.0.0.0:${port}`)));
    const fleet = fc.record({
      chains: fc.uniqueArray(unwellChain, { selector: ({ id }) => id }),
      offlineNodes: some,
      rejectingNodes: some,
      missingListeners: listeners,
      unexpectedListeners: listeners,
      unhealthyUpstreams: some,
      endedCertificates: some,
      endingCertificates: some,
      modifiedChains: some,
      stoppedWebhooks: some,
    });
    const counted = (matters: readonly Matter[], ...kinds: readonly Matter['kind'][]): number =>
      matters.filter(({ kind }) => kinds.includes(kind)).reduce((sum, { count }) => sum + count, 0);

    it('each chain that is not well is in one of them, and nothing else is', () => {
      fc.assert(
        fc.property(fleet, (unwell) => {
          const matters = mattersFor(unwell);
          const due = unwell.chains.filter(({ state, since }) => state !== 'unknown' || now - since >= unknownForMs);
          expect(counted(matters, 'chain_down', 'chain_degraded', 'chain_unknown')).toBe(due.length);
          const inThem = matters
            .filter(({ kind }) => ['chain_down', 'chain_degraded', 'chain_unknown'].includes(kind))
            .flatMap(({ resources }) => resources.map(({ id }) => id));
          expect(new Set(inThem).size).toBe(inThem.length);
          const dueIds = due.map(({ id }) => id);
          for (const id of inThem) expect(dueIds).toContain(id);
        }),
      );
    });

    it('each node and upstream that is not well is in one of them: its own, or as the cause of chains', () => {
      fc.assert(
        fc.property(fleet, (unwell) => {
          const matters = mattersFor(unwell);
          for (const [kind, as, all] of [
            ['node_offline', 'node_offline', unwell.offlineNodes],
            ['node_rejected', 'node_rejected', unwell.rejectingNodes],
            ['upstream_unhealthy', 'upstream_unhealthy', unwell.unhealthyUpstreams],
          ] as const) {
            const causes = unwell.chains.filter((one) => one.cause?.kind === as).map((one) => one.cause?.resource.id);
            expect(counted(matters, kind)).toBe(all.filter(({ id }) => !causes.includes(id)).length);
          }
          expect(counted(matters, 'certificate_ended')).toBe(unwell.endedCertificates.length);
          expect(counted(matters, 'unexpected_listener')).toBe(
            new Set(unwell.unexpectedListeners.map(({ node }) => node.id)).size,
          );
        }),
      );
    });

    it('they come worst first, show at most twenty each, and are as bad as their kind', () => {
      fc.assert(
        fc.property(fleet, (unwell) => {
          const matters = mattersFor(unwell);
          const order = matters.map(
            ({ severity, kind }) => severities.indexOf(severity) * 100 + matterKinds.indexOf(kind),
          );
          expect(order).toEqual(order.toSorted((a, b) => a - b));
          for (const { count, resources, sentence } of matters) {
            expect(resources.length).toBe(Math.min(count, 20));
            expect(sentence).not.toMatch(/undefined|null|\.$/);
          }
        }),
      );
    });
  });
});

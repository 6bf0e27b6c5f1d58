/** The picture of the fleet (`docs/contract/rest.md#topology`), against the simplest way to say each sentence. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runSync } from '../../src/kernel/pieces.js';
import { drawGroups, drawNodes, type Seen, type SeenChain } from '../../src/domain/topology/topology.js';

const ids = Array.from({ length: 8 }, (_, index) => `n${index}`);
const hops = fc.uniqueArray(fc.constantFrom(...ids, 'deleted'), { minLength: 1, maxLength: 5 });
const chain: fc.Arbitrary<SeenChain> = hops.chain((nodes) =>
  fc.record({
    state: fc.constantFrom('ok', 'degraded', 'down', 'unknown'),
    nodes: fc.constant(nodes),
    roundTrips: fc.array(fc.option(fc.nat(99)), { minLength: nodes.length - 1, maxLength: nodes.length - 1 }),
  }),
);
const seen: fc.Arbitrary<Seen> = fc.record({
  nodes: fc.tuple(
    ...ids.map((id) =>
      fc.record({
        id: fc.constant(id),
        name: fc.constant(id),
        group: fc.constantFrom('g10', 'g9', null),
        status: fc.constantFrom('pending', 'online', 'offline'),
        isRejected: fc.boolean(),
      }),
    ),
  ),
  chains: fc.array(chain, { maxLength: 6 }),
  onlyWrong: fc.boolean(),
});
const unwell = ({ state }: SeenChain): boolean => state === 'down' || state === 'degraded';
const worst = ['down', 'degraded', 'unknown', 'ok'] as const;
/** Each step of a chain, with the chain. */
const steps = (chains: readonly SeenChain[]) =>
  chains.flatMap((one) =>
    one.roundTrips.map((ms, at) => ({ one, ms, from: one.nodes[at] ?? '', to: one.nodes[at + 1] ?? '' })),
  );
const linkOf = (of: ReturnType<typeof steps>) => ({
  chains: new Set(of.map(({ one }) => one)).size,
  state: worst.find((state) => of.some(({ one }) => one.state === state)),
  rtt_ms: of.reduce<number | null>((most, { ms }) => (ms === null ? most : Math.max(most ?? 0, ms)), null),
});

it('has all that is there, or all that is wrong, with the chains on it', () => {
  fc.assert(
    fc.property(seen, (given) => {
      const { nodes, links } = runSync(drawNodes(given, undefined));
      const kept = given.nodes.filter(({ id, status, isRejected }) => {
        const isOn = given.chains.some((one) => unwell(one) && one.nodes.includes(id));
        return !given.onlyWrong || status !== 'online' || isRejected || isOn;
      });
      const on = (id: string) => given.chains.filter((one) => one.nodes.includes(id));
      expect(nodes).toEqual(
        kept.map((node) => {
          const down = on(node.id).filter(({ state }) => state === 'down').length;
          return { ...node, chains: { total: on(node.id).length, down } };
        }),
      );
      const walked = steps(given.chains.filter((one) => !given.onlyWrong || unwell(one)));
      const wanted = ids.flatMap((from) =>
        ids.flatMap((to) => {
          const of = walked.filter((step) => step.from === from && step.to === to);
          return of.length === 0 ? [] : [{ from, to, ...linkOf(of) }];
        }),
      );
      expect(links).toEqual(wanted);
    }),
  );
});

it('has groups whose sums are those of their nodes, and whose links are the chains between different ones', () => {
  fc.assert(
    fc.property(seen, (given) => {
      const { nodes } = runSync(drawNodes(given, undefined));
      const { groups, links } = runSync(drawGroups(given));
      const values = (['g9', 'g10', null] as const).filter((value) => nodes.some(({ group }) => group === value));
      const groupOf = new Map(nodes.map(({ id, group }) => [id, group]));
      expect(groups).toEqual(
        values.map((value) => {
          const own = nodes.filter(({ group }) => group === value);
          const by = (of: string) => own.filter(({ status }) => status === of).length;
          const down = given.chains.filter(
            (one) => one.state === 'down' && one.nodes.some((id) => groupOf.get(id) === value),
          );
          return {
            value,
            nodes: own.length,
            by_status: { online: by('online'), offline: by('offline'), pending: by('pending') },
            rejected: own.filter(({ isRejected }) => isRejected).length,
            chains_down: down.length,
          };
        }),
      );
      const walked = steps(given.chains.filter((one) => !given.onlyWrong || unwell(one)));
      const wanted = values.flatMap((from) =>
        values.flatMap((to) => {
          const of = walked.filter((step) => groupOf.get(step.from) === from && groupOf.get(step.to) === to);
          return from === to || of.length === 0 ? [] : [{ from, to, ...linkOf(of) }];
        }),
      );
      expect(links).toEqual(wanted);
    }),
  );
});

it('has of one group its nodes, what is linked with them, and every link among these', () => {
  fc.assert(
    fc.property(seen, fc.constantFrom('g9', 'g10', null, 'none'), (given, value) => {
      const all = runSync(drawNodes(given, undefined));
      const part = runSync(drawNodes(given, value));
      const groupOf = new Map(all.nodes.map(({ id, group }) => [id, group]));
      const isShown = (id: string): boolean =>
        groupOf.get(id) === value ||
        all.links.some(
          ({ from, to }) => (from === id && groupOf.get(to) === value) || (to === id && groupOf.get(from) === value),
        );
      expect(part.nodes).toEqual(all.nodes.filter(({ id }) => isShown(id)));
      expect(part.links).toEqual(all.links.filter(({ from, to }) => isShown(from) && isShown(to)));
    }),
  );
});

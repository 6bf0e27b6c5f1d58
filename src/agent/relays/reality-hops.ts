/**
 * The REALITY hops of one TCP listener: tells clients that hold a hop's key from strangers, who are joined to the
 * target within limits of bytes and silence. A hop that replaces another takes over its clients as soon as it knows its
 * target, so that none of them waits; a hop that no rule has any more accepts no new clients, and keeps
 * those that it has. The handshake is in `src/transport/listener/reality/`. Implements the listening side of
 * `docs/data-plane.md#reality`.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { unreachable } from '../../kernel/errors.js';
import { createReality, type Met, type Reality } from '../../transport/listener/reality/reality.js';
import { isSpent } from '../../transport/listener/reality/spent.js';
import type { RealityHop, RealityRule } from '../plan/plan.js';
import { relayLimits } from './limits.js';
import type { Meter } from './meters.js';
import type { RelayDependencies } from './relay.js';
import { innerSide, type Side } from './splice.js';

/** How often the strangers' limits are checked. */
const sweepMs = 10_000;

export interface RealityHops {
  /** Starts new hops; all others get no new clients. */
  keep(hops: readonly RealityHop[]): void;
  /**
   * Handles a client, and owns its socket as long as it is a stranger's.
   * @param client paused, its first bytes unread
   * @returns the bytes inside, for a client that holds the key; undefined: the connection is over
   */
  meet(client: Socket, rule: RealityRule): Promise<Side | undefined>;
  close(): Promise<void>;
}

interface Running {
  readonly hop: RealityHop;
  readonly own: Reality;
  /** The hop that serves its clients: the previous one, until this one knows its target. */
  serving: Reality;
}

export function createRealityHops({ clock, refusals, targets }: RelayDependencies, meter: Meter): RealityHops {
  /** By the id of the hop. */
  let running = new Map<string, Running>();
  let byRule = new Map<string, Running>();
  /** Clients not known to hold a key, and whether each has exceeded its limits. */
  const strangers = new Map<Socket, () => boolean>();

  const many = (): boolean => strangers.size > relayLimits.tcpUndecidedPerListener / 2;
  const sweeper = setInterval(() => {
    for (const [client, spent] of strangers) if (spent()) client.destroy();
  }, sweepMs);
  sweeper.unref();

  const start = (hop: RealityHop): Running => {
    const known = targets.of(hop.target);
    const shared = known === undefined ? undefined : { known, hellos: targets.hellos };
    const own = createReality({
      settings: hop,
      clock,
      speaksSecond: false,
      ...(shared === undefined ? {} : { shared }),
    });
    const before = byRule.get(hop.ruleId);
    // A new key takes effect at once.
    const follows = before !== undefined && Buffer.compare(before.hop.keys.privateKey, hop.keys.privateKey) === 0;
    if (!follows || known === undefined || known.knows(hop.serverNames)) return { hop, own, serving: own };
    const started: Running = { hop, own, serving: before.serving };
    void known.settled().then(() => {
      started.serving = own;
    });
    return started;
  };

  return {
    keep(hops) {
      const next: typeof running = new Map();
      const rules: typeof byRule = new Map();
      for (const hop of hops) {
        const one = running.get(hop.id) ?? next.get(hop.id) ?? start(hop);
        next.set(hop.id, one);
        rules.set(hop.ruleId, one);
      }
      running = next;
      byRule = rules;
    },
    async meet(client, rule) {
      // Its hop may have been replaced while its hello was awaited.
      const reality = (running.get(rule.hop.id) ?? byRule.get(rule.hop.ruleId))?.serving;
      if (reality === undefined) {
        client.destroy();
        return undefined;
      }
      let inside: Duplex | undefined;
      strangers.set(client, isSpent(client, clock, many));
      try {
        await reality.meet(client, (met) => (inside = judge(met, client, rule, meter, refusals)));
      } finally {
        strangers.delete(client);
      }
      return inside && innerSide(inside, client);
    },
    async close() {
      clearInterval(sweeper);
      const all = Array.from(running.values()).flatMap(({ own, serving }) => [own.close(), serving.close()]);
      running = byRule = new Map();
      await Promise.all(all);
    },
  };
}

/** Counts a client by what it turned out to be. @returns the bytes inside, for a client that holds the key */
function judge(
  met: Met,
  client: Socket,
  { route: { origin }, hop }: RealityRule,
  meter: Meter,
  refusals: RelayDependencies['refusals'],
): Duplex | undefined {
  const note = (reason: string, sentence: string): void =>
    refusals.note({ reason, resource_id: origin.resourceId, address: client.remoteAddress ?? '' }, sentence);
  if (met.kind !== 'agent') meter.refused();
  switch (met.kind) {
    case 'agent':
      return met.stream;
    case 'stranger':
      if (met.reason !== 'other') note(`reality_${met.reason}`, 'a client of a REALITY hop met the target');
      return undefined;
    case 'unusable_target':
      note('reality_unusable_target', 'the target answered in a way that a REALITY hop cannot imitate');
      return undefined;
    case 'no_target':
      note('reality_no_target', `the target ${hop.target.host} of a REALITY hop cannot be reached`);
      return undefined;
    case 'unfinished':
      meter.handshakeFailed();
      return undefined;
    default:
      return unreachable(met);
  }
}

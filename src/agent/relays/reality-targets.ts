/**
 * The targets of all REALITY hops of the node. What is known of a target does not depend on the hop, so a hop that
 * replaces another one knows its target at once. Reports for each route whether its target can be reached and imitated.
 * Implements `state` of a route in `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { RuntimeRoute } from '../../gen/svc/control/v1/heartbeat.js';
import type { Clock } from '../../kernel/clock.js';
import { formatHostPort, type HostPort } from '../../kernel/host-port.js';
import type { Logger } from '../../kernel/logger.js';
import { createHelloMemory, type HelloMemory } from '../../transport/listener/reality/authenticate.js';
import { createKnownTarget, type KnownTarget } from '../../transport/listener/reality/known-target.js';
import type { TargetTrouble } from '../../transport/listener/reality/probe.js';
import { createTarget } from '../../transport/listener/reality/target.js';
import { hopsOf, type ListenerPlan } from '../plan/plan.js';
import { relayLimits } from './limits.js';

export interface RealityTargets {
  /** Replaces the listeners whose targets are probed. */
  set(plans: Iterable<ListenerPlan>): void;
  /** The knowledge about a target of these listeners. */
  of(target: HostPort): KnownTarget | undefined;
  /** The routes of one of these listeners, with the states of their targets. */
  routes(plan: ListenerPlan): readonly RuntimeRoute[];
  readonly hellos: HelloMemory;
  close(): Promise<void>;
}

interface RealityTargetsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when the state of a route changes. */
  readonly changed: () => void;
}

const states = { unreachable: 'target_unreachable', unusable: 'target_unusable' } as const;
const sentences = {
  unreachable: 'the target of a REALITY hop cannot be reached',
  unusable: 'the target of a REALITY hop answers in a way that cannot be imitated',
} as const;

export function createRealityTargets({ clock, logger, changed }: RealityTargetsOptions): RealityTargets {
  const running = new Map<string, { readonly known: KnownTarget; close(): Promise<void> }>();
  const closing = new Set<Promise<void>>();

  const start = (target: HostPort, names: readonly string[]): void => {
    const text = formatHostPort(target);
    const visited = createTarget(target);
    const tell = (server_name: string, trouble: TargetTrouble | undefined): void => {
      if (trouble === undefined) logger.info({ target: text, server_name }, 'the target of a REALITY hop works again');
      else logger.warn({ target: text, server_name, state: states[trouble] }, sentences[trouble]);
      changed();
    };
    const watchMs = relayLimits.realityProbeMs;
    const known = createKnownTarget({ target: visited, serverNames: names, clock, watchMs, changed: tell });
    const close = (): Promise<void> => {
      visited.close();
      return known.close();
    };
    running.set(text, { known, close });
  };

  return {
    hellos: createHelloMemory(clock),
    set(plans) {
      const wanted = new Map<string, { readonly target: HostPort; readonly names: Set<string> }>();
      for (const { target, serverNames } of Array.from(plans).flatMap(hopsOf)) {
        const text = formatHostPort(target);
        const names = new Set([...(wanted.get(text)?.names ?? []), ...serverNames]);
        wanted.set(text, { target, names });
      }
      for (const [text, { close }] of running) {
        if (wanted.has(text)) continue;
        running.delete(text);
        const done = close().finally(() => closing.delete(done));
        closing.add(done);
      }
      for (const [text, { target, names }] of wanted) {
        const existing = running.get(text);
        if (existing === undefined) start(target, [...names]);
        else existing.known.keep([...names]);
      }
    },
    of: (target) => running.get(formatHostPort(target))?.known,
    routes(plan) {
      const byName = new Map<string, TargetTrouble>();
      for (const { target, serverNames } of hopsOf(plan)) {
        const known = running.get(formatHostPort(target))?.known;
        for (const name of serverNames) {
          const trouble = known?.trouble(name);
          if (trouble !== undefined) byName.set(name, trouble);
        }
      }
      if (byName.size === 0) return plan.routes;
      return plan.routes.map((route) => {
        const trouble = route.matchKind === 'reality' ? byName.get(route.matchValue.toLowerCase()) : undefined;
        return trouble === undefined ? route : { ...route, state: states[trouble] };
      });
    },
    async close() {
      await Promise.all([...Array.from(running.values(), ({ close }) => close()), ...closing]);
      running.clear();
    },
  };
}

/**
 * The node's listening sockets: switches them from one target to the next as a whole, or leaves them as they were.
 * Listeners that are in both targets are untouched, and so are their connections. Implements
 * `docs/contract/agent-protocol.md#configuration` ("as one target").
 */
import type { ConfigApplyError } from '../../gen/svc/control/v1/config.js';
import { errorText } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import { err, ok, type Result } from '../../kernel/result.js';
import type { ListenerPlan } from '../plan/plan.js';
import { applyError } from '../plan/apply-error.js';
import type { RelayDependencies, RelayListener } from './relay.js';
import { openTcpListener } from './tcp-listener.js';
import { openUdpListener } from './udp-listener.js';

/** How long the connections of a removed listener may stay open. */
const drainMs = 10_000;

interface ListenerSet {
  get(key: string): RelayListener | undefined;
  /**
   * Opens the new listeners. On success, traffic is not affected yet: `commit` routes the new listeners and closes the
   * obsolete ones. On failure, everything is as before, and the errors name the resources concerned.
   */
  prepare(plans: ReadonlyMap<string, ListenerPlan>): Promise<Result<{ commit(): void }, readonly ConfigApplyError[]>>;
  /** Closes all listeners and their live connections. */
  close(): Promise<void>;
}

const open = { tcp: openTcpListener, udp: openUdpListener };

export function createListenerSet(dependencies: RelayDependencies): ListenerSet {
  let running = new Map<string, { readonly listener: RelayListener; readonly plan: ListenerPlan }>();
  const draining = new Set<RelayListener>();

  return {
    get: (key) => running.get(key)?.listener,
    async prepare(plans) {
      const relays = [...plans.values()].filter(({ service }) => service !== undefined);
      const added = relays.filter(({ key }) => running.get(key)?.listener.state !== 'running');
      const wanted = new Set(relays.map(({ key }) => key));
      const obsolete = [...running.values()].filter(
        ({ plan }) => !wanted.has(plan.key) || added.some(({ key }) => key === plan.key),
      );
      // An old listener whose address overlaps a new one's must release the port first.
      const overlapping = obsolete.filter(({ plan }) => added.some((other) => overlaps(plan, other)));
      const opened = new Map<string, RelayListener>();
      const errors: ConfigApplyError[] = [];
      for (const { listener } of overlapping) listener.suspend();
      for (const plan of added) {
        try {
          opened.set(plan.key, await open[plan.transport](plan, dependencies));
        } catch (error) {
          const place = `${plan.transport} ${plan.addr} ${plan.port}`;
          for (const origin of plan.origins) {
            errors.push(applyError(origin, fieldOf(error), `cannot listen on ${place}: ${errorText(error)}`));
          }
          if (errors.length >= limits.agent.applyErrors) break;
        }
      }
      if (errors.length > 0) {
        await Promise.all(Array.from(opened.values(), (listener) => listener.close(0)));
        for (const { plan, listener } of overlapping) {
          try {
            await listener.resume();
          } catch (error) {
            dependencies.logger.error(
              { listener: plan.key, error: errorText(error) },
              'cannot reopen a listener of the running configuration',
            );
          }
        }
        return err(errors);
      }
      return ok({
        commit() {
          const next: typeof running = new Map();
          for (const plan of relays) {
            const listener = opened.get(plan.key) ?? running.get(plan.key)?.listener;
            if (listener === undefined) continue;
            listener.serve(plan);
            next.set(plan.key, { listener, plan });
          }
          running = next;
          for (const { listener } of obsolete) {
            draining.add(listener);
            void listener.close(drainMs).finally(() => draining.delete(listener));
          }
        },
      });
    },
    async close() {
      const all = [...Array.from(running.values(), ({ listener }) => listener), ...draining];
      running = new Map();
      await Promise.all(all.map((listener) => listener.close(0)));
    },
  };
}

/** Same transport and port, and one address covers the other: `docs/contract/domain.md#listeners-and-collisions`. */
function overlaps(a: ListenerPlan, b: ListenerPlan): boolean {
  if (a.transport !== b.transport || a.port !== b.port) return false;
  const covers = (wide: string, narrow: string): boolean =>
    wide === narrow || wide === '::' || (wide === '0.0.0.0' && (!narrow.includes(':') || narrow === '::'));
  return covers(a.addr, b.addr) || covers(b.addr, a.addr);
}

/** The REST field that must change for the bind to succeed. */
function fieldOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT' || code === 'EINVAL' ? 'listen_addr' : 'listen_port';
}

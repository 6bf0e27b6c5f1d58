/**
 * The pins of the running configuration. When a next hop's certificate is replaced, that node may use the new one a
 * moment before this node has its pin. So a connection that meets an unknown key briefly waits for its pin.
 */
import { createWaiters } from '../../kernel/waiters.js';
import type { UpstreamTls } from '../plan/plan.js';
import { relayLimits } from './limits.js';

/** How many connections may wait for a pin. */
const maxWaiting = 1024;

export interface Pins {
  /** Replaces all pins, by rule id. */
  set(pins: ReadonlyMap<string, UpstreamTls>): void;
  /** Waits until a rule trusts this key; undefined if that does not happen in time. */
  arrival(ruleId: string, pin: string): Promise<UpstreamTls | undefined>;
  /** Ends all waits. */
  close(): void;
}

export function createPins(): Pins {
  const waiters = createWaiters(maxWaiting);
  let current: ReadonlyMap<string, UpstreamTls> = new Map();
  return {
    set(pins) {
      current = pins;
      waiters.look();
    },
    async arrival(ruleId, pin) {
      const trusted = (): boolean => current.get(ruleId)?.pins.has(pin) === true;
      return (await waiters.until(trusted, relayLimits.newPinMs)) ? current.get(ruleId) : undefined;
    },
    close: waiters.close,
  };
}

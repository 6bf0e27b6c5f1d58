/**
 * The pins of the running configuration. When a next hop's certificate is replaced, that node may run the new one a moment
 * before this node has its pin. A connection that meets an unknown key therefore waits a moment for its pin.
 */
import { createWaiters } from '../../kernel/waiters.js';
import type { UpstreamTls } from '../plan/plan.js';
import { relayLimits } from './limits.js';

/** Connections that may wait for a pin at a time. */
const maxWaiting = 1024;

export interface Pins {
  /** Replaces all pins, by rule id. */
  set(pins: ReadonlyMap<string, UpstreamTls>): void;
  /** Waits until a rule trusts this key; undefined if it does not in time. */
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

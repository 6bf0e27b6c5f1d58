/** The data plane of the reference agent, as tests of what it listens for and dials start it. */
import { expect } from 'vitest';
import type { Gateway } from '../../src/agent/gateway.js';
import { createRuntime } from '../../src/agent/runtime.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger, type Logger } from '../../src/kernel/logger.js';
import { snapshot } from './snapshots.js';

/** @param closers what the test closes when it ends; the new one is added to it */
export function agentRuntime(closers: (() => Promise<unknown>)[], logger: Logger = silentLogger): Gateway {
  const made = createRuntime({ rejectUnsupported: true, logger, clock: systemClock });
  closers.push(() => made.close());
  return made;
}

/** Applies a snapshot, of which everything can run. */
export async function applied(gateway: Gateway, ...of: Parameters<typeof snapshot>): Promise<void> {
  expect((await gateway.apply(snapshot(...of)))?.errors).toEqual([]);
}

/**
 * Writes fleet commands to a log without the gateway: decides on its own fold and appends one command at a time, without
 * grouping and retries. For tests of what reads the log.
 */
import { randomUUID } from 'node:crypto';
import { fleetAggregate, type DecidedOnFleet } from '../../src/commands/aggregate.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { compilerVersion } from '../../src/kernel/release.js';
import { streams, type ProposedEvent, type RecordedCommand } from '../../src/kernel/event.js';
import { runSync } from '../../src/kernel/pieces.js';
import type { JsonObject } from '../../src/kernel/json.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { linked, testLogChain } from './log-chain.js';

export interface FleetLog {
  readonly fleet: Fleet;
  /** Appends the command. @returns the revision of its last event, or the current revision when it changed nothing */
  run(command: DecidedOnFleet, at?: string): Promise<number>;
  /** Appends events as one command, without a decision. */
  append(
    events: readonly { readonly type: string; readonly data: JsonObject; readonly schema?: number }[],
    at?: string,
  ): Promise<number>;
  createNode(id: string, name?: string): Promise<number>;
}

export async function createFleetLog(
  store: EventStore,
  now: () => string = () => '2025-01-01T00:00:00.000Z',
): Promise<FleetLog> {
  const fleet = emptyFleet();
  const chain = testLogChain();
  const append: FleetLog['append'] = async (events, at = now()) => {
    const command = { id: randomUUID(), count: events.length };
    const proposed = events.map(({ type, data, schema }, index): ProposedEvent => ({
      id: randomUUID(),
      type,
      data,
      metadata: {
        command: { ...command, index },
        actor: { type: 'system', id: 'test', name: 'test' },
        request_id: 'test',
        occurred_at: at,
        schema_version: schema ?? 1,
      },
    }));
    const before = fleet.revision.value;
    const own = linked(proposed, fleet.logChain.value, streams.fleet, chain);
    const outcome = await store.append(streams.fleet, before < 0 ? 'no_stream' : before, own);
    if (outcome.kind !== 'appended') throw new Error(`not appended: ${JSON.stringify(outcome)}`);
    const recorded = own.map((event, index) => ({
      ...event,
      stream: streams.fleet,
      revision: before + 1 + index,
      position: before + 1 + index,
    }));
    const inLog = { stream: streams.fleet, events: recorded as unknown as RecordedCommand['events'] };
    fleet.logChain.set(chain.follow(fleet.logChain.value, inLog));
    applyCommand(fleet, inLog);
    return outcome.revision;
  };
  const run: FleetLog['run'] = async (command, at) => {
    const decision = runSync(fleetAggregate.decide(fleet, command));
    if (!decision.ok) throw new Error(`refused: ${decision.error.message}`);
    if (decision.value.length === 0) return fleet.revision.value;
    return append(decision.value as unknown as { type: string; data: JsonObject }[], at);
  };
  await run({ type: 'RaiseCompilerVersion', version: compilerVersion });
  return {
    fleet,
    run,
    append,
    createNode: (id, name = id) =>
      run({ type: 'CreateNode', id, name, description: null, address: '192.0.2.1', labels: {}, psk: null }),
  };
}

/**
 * Writes a long log of a fleet, deciding every command on the fold like the gateway, but without waiting for projections:
 * up to 10,000 nodes and 20,000 deployed chains over two hops, then a realistic mix of edits.
 */
import { fleetAggregate } from '../src/commands/aggregate.js';
import { asRecorded, propose } from '../src/commands/proposal.js';
import { compilerVersion } from '../src/kernel/release.js';
import type { FleetCommand } from '../src/domain/fleet/resources.js';
import { emptyFleet } from '../src/domain/fleet/fleet.js';
import { applyCommand } from '../src/domain/fleet/apply.js';
import { systemClock } from '../src/kernel/clock.js';
import { streams, type ProposedEvent } from '../src/kernel/event.js';
import { uuidFromName } from '../src/kernel/ids.js';
import { limits } from '../src/kernel/limits.js';
import { runSync } from '../src/kernel/pieces.js';
import type { LogChain } from '../src/security/log-chain/log-chain.js';
import type { EventStore } from '../src/storage/event-store.js';

export interface FleetShape {
  readonly nodes: number;
  readonly upstreams: number;
  readonly chains: number;
}

/** The fleet for a log of `events` events: part of them create it, the rest edit it. */
function shapeFor(events: number): FleetShape {
  const share = Math.min(1, events / 200_000);
  return {
    nodes: Math.max(10, Math.round(10_000 * share)),
    upstreams: Math.max(5, Math.round(2_000 * share)),
    chains: Math.max(20, Math.round(20_000 * share)),
  };
}

export const nodeId = (index: number): string => uuidFromName(`bench-node-${index}`);
/** The upstream that only chain `index` uses, if the fleet has as many upstreams as chains. */
export const upstreamId = (index: number): string => uuidFromName(`bench-upstream-${index}`);
const chainId = (index: number): string => uuidFromName(`bench-chain-${index}`);
const actor = { type: 'user', id: uuidFromName('bench-user'), name: 'operator' } as const;

function* commandsOf(shape: FleetShape): Generator<FleetCommand, void, void> {
  yield { type: 'RaiseCompilerVersion', version: compilerVersion };
  for (let index = 0; index < shape.nodes; index += 1) {
    const [b, c] = [Math.floor(index / 250) % 250, index % 250];
    const labels = { region: `region-${index % 12}`, tier: index % 3 === 0 ? 'edge' : 'core' };
    const address = `10.${Math.floor(index / 62_500)}.${b}.${c + 1}`;
    yield {
      type: 'CreateNode',
      id: nodeId(index),
      name: `node-${index}`,
      description: null,
      address,
      labels,
      psk: null,
    };
  }
  for (let index = 0; index < shape.upstreams; index += 1) {
    yield {
      type: 'CreateUpstream',
      id: upstreamId(index),
      name: `upstream-${index}`,
      endpoint: `backend-${index}.example.org:8443`,
      server_names: [`backend-${index}.example.org`],
      health_check_interval_ms: 10_000,
      enabled: true,
      tls: null,
      reality: null,
    };
  }
  for (let index = 0; index < shape.chains; index += 1) {
    const id = chainId(index);
    const hop = (node: number, port: number) =>
      ({
        node_id: nodeId(node % shape.nodes),
        listen_addr: '0.0.0.0',
        listen_port: port,
        outer: 'tcp',
        security: 'raw',
      }) as const;
    const round = Math.floor(index / shape.nodes);
    yield {
      type: 'CreateChain',
      id,
      name: `chain-${index}`,
      description: null,
      enabled: true,
      payload: 'tcp',
      hops: [hop(index, 20_000 + round), hop(index + 1, 30_000 + round)],
      target: { upstream_id: upstreamId(index % shape.upstreams) },
    };
    yield { type: 'DeployChain', id, ifMatch: undefined };
  }
  for (let edit = 0; ; edit += 1) {
    const pick = edit * 7919;
    switch (edit % 10) {
      case 0:
      case 1:
      case 2:
        yield { type: 'UpdateNode', id: nodeId(pick % shape.nodes), ifMatch: undefined, description: `edit ${edit}` };
        break;
      case 3:
      case 4:
        yield {
          type: 'UpdateNode',
          id: nodeId(pick % shape.nodes),
          ifMatch: undefined,
          labels: { region: `region-${edit % 12}`, tier: 'edge', revision: String(edit) },
        };
        break;
      case 5:
      case 6:
        yield {
          type: 'UpdateUpstream',
          id: upstreamId(pick % shape.upstreams),
          ifMatch: undefined,
          health_check_interval_ms: 1_000 + (edit % 50_000),
        };
        break;
      default: {
        const id = chainId((edit - (edit % 10)) % shape.chains);
        if (edit % 10 === 9) yield { type: 'DeployChain', id, ifMatch: undefined };
        else yield { type: 'UpdateChain', id, ifMatch: undefined, description: `edit ${edit}` };
      }
    }
  }
}

/** The upstream that all nodes' chains share. */
export const sharedUpstreamId = uuidFromName('bench-shared-upstream');

/** Nodes with a deployed chain to one upstream; the first `own` also have one to an upstream of their own. */
function* commandsOfAgents(nodes: number, own: number): Generator<FleetCommand, void, void> {
  yield { type: 'RaiseCompilerVersion', version: compilerVersion };
  const upstream = (id: string, name: string): FleetCommand => ({
    type: 'CreateUpstream',
    id,
    name,
    endpoint: '192.0.2.10:8443',
    server_names: [],
    health_check_interval_ms: 10_000,
    enabled: true,
    tls: null,
    reality: null,
  });
  yield upstream(sharedUpstreamId, 'shared');
  for (let index = 0; index < nodes; index += 1) {
    const node = { id: nodeId(index), name: `agent-${index}`, description: null, address: '192.0.2.1', labels: {} };
    yield { type: 'CreateNode', ...node, psk: null };
    const chains: (readonly [name: string, port: number, upstreamId: string])[] = [
      [`shared-${index}`, 20_000, sharedUpstreamId],
    ];
    if (index < own) {
      yield upstream(upstreamId(index), `own-${index}`);
      chains.push([`own-${index}`, 20_001, upstreamId(index)]);
    }
    for (const [name, listen_port, upstream_id] of chains) {
      const id = uuidFromName(`bench-chain-${name}`);
      const listener = { listen_addr: '0.0.0.0', listen_port, outer: 'tcp', security: 'raw' } as const;
      const hops = [{ node_id: node.id, ...listener }];
      const fields = { description: null, enabled: true, payload: 'tcp', target: { upstream_id } } as const;
      yield { type: 'CreateChain', id, name, hops, ...fields };
      yield { type: 'DeployChain', id, ifMatch: undefined };
    }
  }
}

/** An empty log and its log chain. */
export interface BenchLog {
  readonly eventStore: EventStore;
  readonly logChain: Pick<LogChain, 'link'>;
}

/** How many appends may wait for their flush at the same time. */
const inFlight = 32;

/**
 * Fills an empty store with `events` events of `svc-fleet`, in appends as large as the gateway's.
 * @param shape by default, derived from the number of events
 * @throws Error when a command is refused or an append is not written
 */
export function writeFleetLog(log: BenchLog, events: number, shape: FleetShape = shapeFor(events)): Promise<void> {
  return writeLog(log, commandsOf(shape), events);
}

/** Fills an empty store with a fleet for `nodes` agents, the first `own` of which have an upstream of their own. */
export function writeAgentFleetLog(log: BenchLog, nodes: number, own: number): Promise<void> {
  return writeLog(log, commandsOfAgents(nodes, own), Number.POSITIVE_INFINITY);
}

async function writeLog(
  { eventStore, logChain }: BenchLog,
  commands: Iterable<FleetCommand>,
  events: number,
): Promise<void> {
  const { decide, stream } = fleetAggregate;
  const fleet = emptyFleet();
  const context = { actor, requestId: 'bench' };
  const ids = { next: sequentialIds() };
  const flights: Promise<void>[] = [];
  let group: ProposedEvent[] = [];
  let bytes = 0;
  let appended = -1;

  async function flush(): Promise<void> {
    if (group.length === 0) return;
    const [events, expected] = [group, appended];
    appended += events.length;
    [group, bytes] = [[], 0];
    const written = eventStore.append(stream, expected < 0 ? 'no_stream' : expected, events).then((outcome) => {
      if (outcome.kind !== 'appended') throw new Error(`an append was not written: ${outcome.kind}`);
    });
    // Awaited below; without this a failure before that would be an unhandled rejection.
    written.catch(() => undefined);
    flights.push(written);
    if (flights.length >= inFlight) await flights.shift();
  }

  for (const command of commands) {
    if (fleet.revision.value + 1 >= events) break;
    const decision = runSync(decide(fleet, command));
    if (!decision.ok) throw new Error(`${command.type} was refused: ${decision.error.message}`);
    if (decision.value.length === 0) continue;
    const proposal = propose(decision.value, context, systemClock, ids, (proposed) => {
      const { link, head } = logChain.link(fleet.logChain.value, stream, proposed);
      fleet.logChain.set(head);
      return { link };
    });
    applyCommand(fleet, asRecorded(streams.fleet, proposal, fleet.revision.value));
    if (
      group.length + proposal.events.length > limits.events.appendEvents ||
      bytes + proposal.bytes > limits.events.appendBytes
    ) {
      await flush();
    }
    group.push(...proposal.events);
    bytes += proposal.bytes;
  }
  await flush();
  await Promise.all(flights);
}

/** Unique within the log, and cheaper than random ids. */
function sequentialIds(): () => string {
  let last = 0;
  return () => `00000000-0000-4000-8000-${(last += 1).toString(16).padStart(12, '0')}`;
}

/**
 * The floor of a fleet: a bare grpc-js server with as many connections, the same calls and the same bytes, but without
 * handshake, encryption and state; and what encoding and sealing one snapshot costs.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../scripts/stack/process.js';
import { encodeTables, heartbeatPayload } from '../../scripts/simulate/light/payloads.js';
import { CipherState } from '../../src/channel/noise/cipher-state.js';
import { splitPayload } from '../../src/channel/noise/fragmenter.js';
import { watchApplies } from '../applies.js';
import { startChild } from '../child.js';
import { rounded, sharedClock, spread, type Figure } from '../figures.js';
import type { Push } from '../floors/bare-grpc.js';
import { snapshotOf } from '../fleet-over-rest.js';
import type { BareHeartbeats, StartBare } from '../processes/bare-fleet.js';
import { processorSeconds, withFolder } from '../stack.js';
import { fullTable, type Extent, type Row } from './rows.js';

export type Figures = Record<string, Figure>;

interface Memory {
  readonly rss: number;
  readonly heap: number;
}

const ports = [20_000];

/** Figures by the row that they belong to. */
export async function measureFloor(extent: Extent): Promise<Partial<Record<Row, Figures>>> {
  const { agents, wanted, rounds } = extent;
  const snapshotBytes = snapshotOf(ports)().length;
  return withFolder(async (folder) => {
    const server = startChild('floors/bare-grpc', [join(folder, 'floor')], ['--expose-gc']);
    const fleets = [startChild('processes/bare-fleet'), startChild('processes/bare-fleet')];
    const cpu = (): Promise<number> => processorSeconds(server.pid);
    const found: Partial<Record<Row, Figures>> = {};
    try {
      const port = await server.ask<number>('listen');
      const applies = watchApplies(...fleets);
      const [empty, cpuBefore, began] = [await server.ask<Memory>('memory'), await cpu(), sharedClock()];
      const half = Math.ceil(agents / 2);
      await Promise.all(
        fleets.map((fleet, index) => {
          const count = index === 0 ? half : agents - half;
          return fleet.ask('start', { port, first: index * half, count, snapshotBytes } satisfies StartBare);
        }),
      );
      await eventually(
        'the bare agents are connected',
        async () => {
          const configured = await Promise.all(fleets.map((fleet) => fleet.ask<number>('configured')));
          return configured.reduce((sum, each) => sum + each, 0) === agents ? true : undefined;
        },
        120_000,
      );
      found.connect = {
        cpu_ms_each: rounded(((await cpu()) - cpuBefore) * (1_000 / agents)),
        wall_s: rounded((sharedClock() - began) / 1_000),
      };
      const kib = (now: Memory): Figure => ({
        rss: rounded((now.rss - empty.rss) / agents / 1_024),
        heap: rounded((now.heap - empty.heap) / agents / 1_024),
      });
      if (wanted.has('memory')) found.memory = { idle_kib_each: kib(await server.ask<Memory>('memory')) };
      if (wanted.has('one')) {
        const times: number[] = [];
        for (let round = 0; round < rounds.one; round += 1) {
          const to = (round * 7_919) % agents;
          const applied = applies.next([String(to)]);
          const edited = sharedClock();
          await server.ask('push', { to, size: snapshotBytes, edit: 'x'.repeat(500) } satisfies Push);
          times.push(((await applied).get(String(to))?.at ?? Number.NaN) - edited);
        }
        found.one = { ms: { ...spread(times) } };
      }
      if (wanted.has('all')) {
        const everyone = Array.from({ length: agents }, (_, index) => String(index));
        const [walls, cpus]: [number[], number[]] = [[], []];
        for (let round = 0; round < rounds.all; round += 1) {
          const applied = applies.next(everyone, 60_000);
          const [edited, spent] = [sharedClock(), await cpu()];
          await server.ask('push', { to: 'all', size: snapshotBytes, edit: 'x'.repeat(500) } satisfies Push);
          walls.push(Math.max(...Array.from((await applied).values(), ({ at }) => at)) - edited);
          cpus.push(((await cpu()) - spent) * (1e6 / agents));
        }
        found.all = {
          until_all_have_it_ms: { ...spread(walls) },
          cpu_us_each: { ...spread(cpus) },
          encode_and_seal_us_each: encodeAndSealMicroseconds(),
        };
      }
      if (wanted.has('heartbeats')) {
        const [table = new Uint8Array()] = encodeTables({ ...fullTable, changing: false });
        const bytes = heartbeatPayload(1, Date.now(), table).length;
        const beats = { everyMs: extent.heartbeatEveryMs, bytes } satisfies BareHeartbeats;
        await Promise.all(fleets.map((fleet) => fleet.ask('heartbeats', beats)));
        await delay(extent.heartbeatEveryMs);
        const [spent, since] = [await cpu(), performance.now()];
        await delay(extent.heartbeatsMs);
        const cores = (((await cpu()) - spent) * 1_000) / (performance.now() - since);
        await Promise.all(fleets.map((fleet) => fleet.ask('quiet')));
        found.heartbeats = { bytes, cores: rounded(cores) };
      }
      if (found.memory !== undefined) {
        found.memory = { ...found.memory, after_traffic_kib_each: kib(await server.ask<Memory>('memory')) };
      }
      return found;
    } finally {
      await Promise.all([server, ...fleets].map((child) => child.close()));
    }
  });
}

/** Processor time to compile, encode and encrypt the snapshot of one node, which no push can do without. */
function encodeAndSealMicroseconds(): number {
  const encode = snapshotOf(ports);
  const cipher = new CipherState(randomBytes(32));
  const seal = (): void => {
    for (const plaintext of splitPayload(encode())) cipher.encrypt(cipher.nextSequence, plaintext);
  };
  const times = 2_000;
  for (let warmUp = 0; warmUp < times; warmUp += 1) seal();
  const before = process.cpuUsage();
  for (let time = 0; time < times; time += 1) seal();
  const { user, system } = process.cpuUsage(before);
  return rounded((user + system) / times);
}

/**
 * Commands per second with 1 and 64 callers, through the gateway on an event store alone and over REST on the whole
 * service, for each pair of stores. Floor: bare appends to the same event store, of one event and of groups of 64.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { startChild } from './child.js';
import { beside, type Figure } from './figures.js';
import { throughput } from './http-caller.js';
import type { AdapterStores } from './processes/adapter.js';
import { mongoDbAvailable, withEventStoreDb, withMongoDb } from './servers.js';
import { withFolder, withService } from './stack.js';

export interface CommandSizes {
  readonly rounds: number;
  readonly forMs: number;
}

type Outer = Omit<AdapterStores, 'dataDir'>;

interface Measured {
  rate(callers: number): Promise<number>;
  /** JSON of an event that a command has written. */
  sample(): Promise<string>;
}

const callerCounts = [1, 64] as const;

/** Measures both in turn, so that other load on the machine affects both. */
async function besideBareAppends(
  folder: string,
  eventStoreUrl: string | undefined,
  subject: Measured,
  { rounds, forMs }: CommandSizes,
): Promise<Figure> {
  const floor =
    eventStoreUrl === undefined
      ? startChild('floors/bare-lmdb', [join(folder, 'bare')])
      : startChild('floors/bare-eventstoredb', [eventStoreUrl]);
  try {
    await subject.rate(1);
    const sample = await subject.sample();
    const none = (): { [callers: number]: number[] } => ({ 1: [], 64: [] });
    const [service, bare] = [none(), none()];
    // Round -1 is the warm-up.
    for (let round = -1; round < rounds; round += 1) {
      for (const count of callerCounts) {
        const ofFloor = await floor.ask<number>('appends', { group: count, forMs, sample }, forMs + 60_000);
        const ofService = await subject.rate(count);
        if (round < 0) continue;
        bare[count]?.push(ofFloor);
        service[count]?.push(ofService);
      }
    }
    return {
      callers_1_beside_single_appends: beside(service[1] ?? [], bare[1] ?? []),
      callers_64_beside_groups_of_64: beside(service[64] ?? [], bare[64] ?? []),
    };
  } finally {
    await floor.close();
  }
}

async function throughGateway(folder: string, outer: Outer, sizes: CommandSizes): Promise<Figure> {
  const { forMs } = sizes;
  const child = startChild('processes/adapter', [JSON.stringify({ dataDir: join(folder, 'gateway'), ...outer })]);
  try {
    const figure = await besideBareAppends(
      folder,
      outer.eventStoreUrl,
      {
        rate: (callers) => child.ask('commands', { callers, forMs }, forMs + 60_000),
        sample: () => child.ask('sample'),
      },
      sizes,
    );
    await child.ask('close');
    return figure;
  } finally {
    await child.close();
  }
}

/** Shared by all services of a run: on a real server, later ones read what the first has sealed. */
const masterKey = randomBytes(32).toString('base64');

async function overRest(folder: string, outer: Outer, sizes: CommandSizes): Promise<Figure> {
  const { eventStoreUrl, mongoUrl } = outer;
  const external = eventStoreUrl !== undefined || mongoUrl !== undefined;
  const env = {
    ...(eventStoreUrl !== undefined && { SVC_EVENTSTORE_URL: eventStoreUrl }),
    ...(mongoUrl !== undefined && { SVC_MONGODB_URL: mongoUrl }),
    ...(external && { SVC_MASTER_KEY: masterKey }),
  };
  return withService({ dataDir: join(folder, 'service'), env }, async (service) => {
    const callers = await service.callers(Math.max(...callerCounts));
    try {
      const rate = async (count: number): Promise<number> => {
        const request = () => ({ method: 'POST', path: '/api/l4-upstreams', body: body() });
        return (await throughput(callers.slice(0, count), sizes.forMs, request, 201)).perSecond;
      };
      return await besideBareAppends(folder, eventStoreUrl, { rate, sample: async () => sampleEvent() }, sizes);
    } finally {
      for (const caller of callers) caller.close();
    }
  });
}

const upstream = (): { readonly [field: string]: unknown } => ({
  name: `upstream-${randomUUID()}`,
  endpoint: '192.0.2.10:8443',
  server_names: ['one.example.org', 'two.example.org'],
  health_check_interval_ms: 5_000,
});
const body = (): string => JSON.stringify(upstream());

/** An event of the size that a request writes; the log of a running service cannot be read from here. */
function sampleEvent(): string {
  const [id, request_id] = [randomUUID(), randomUUID()];
  const metadata = {
    command: { id, index: 0, count: 1 },
    actor: { type: 'user', id, name: 'admin' },
    request_id,
    occurred_at: new Date().toISOString(),
    schema_version: 1,
  };
  return JSON.stringify({
    id,
    type: 'UpstreamCreated',
    data: { id, ...upstream(), enabled: true, tls: null, reality: null },
    metadata,
  });
}

interface CommandFigures {
  readonly gateway: { readonly [eventStore: string]: Figure };
  readonly rest: { readonly [pair: string]: Figure };
}

export async function measureCommands(sizes: CommandSizes): Promise<CommandFigures & { [name: string]: Figure }> {
  type On = (folder: string, outer: Outer, sizes: CommandSizes) => Promise<Figure>;
  const on = (measure: On, outer: Outer): Promise<Figure> => withFolder((folder) => measure(folder, outer, sizes));
  const gateway = {
    embedded: await on(throughGateway, {}),
    eventstoredb: await withEventStoreDb((eventStoreUrl) => on(throughGateway, { eventStoreUrl })),
  };
  const rest: { [pair: string]: Figure } = {
    embedded_and_embedded: await on(overRest, {}),
    eventstoredb_and_embedded: await withEventStoreDb((eventStoreUrl) => on(overRest, { eventStoreUrl })),
  };
  if (mongoDbAvailable()) {
    rest['eventstoredb_and_mongodb'] = await withEventStoreDb((eventStoreUrl) =>
      withMongoDb((mongoUrl) => on(overRest, { eventStoreUrl, mongoUrl })),
    );
  }
  return { gateway, rest };
}

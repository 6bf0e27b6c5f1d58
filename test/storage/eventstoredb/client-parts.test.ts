/**
 * The private parts of the client package: each is used while it works as expected, and left alone in a package in which
 * it does not, or when the setting says so. The service works all the same.
 */
import { EventStoreDBClient } from '@eventstore/db-client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/config/config.js';
import { printableConfig } from '../../../src/config/variables.js';
import { tryClientParts, type ClientParts } from '../../../src/storage/eventstoredb/client-parts.js';
import { openEventStoreDb, type EventStoreDbOptions } from '../../../src/storage/eventstoredb/open.js';
import { startEventStoreDb, type EventStoreDbServer } from '../../servers/eventstoredb/server.js';
import { appendAtEnd, collectLog, commandOf, readAll } from '../contract/appending.js';
import { recordingLogger, type LogLine } from './fixture.js';

type Arguments = ConstructorParameters<typeof EventStoreDBClient>;
type Inner = Record<string, (...args: readonly unknown[]) => unknown>;

/** The package in a version that differs in one thing. */
function otherVersion(change: (client: Inner) => void): typeof EventStoreDBClient {
  return class extends EventStoreDBClient {
    constructor(...args: Arguments) {
      super(...args);
      change(this as unknown as Inner);
    }
  } as typeof EventStoreDBClient;
}

/** An append asks for the batch way, whatever its credentials. */
class AlwaysBatch extends EventStoreDBClient {}
Object.defineProperty(AlwaysBatch.prototype, 'appendToStream', {
  async value(this: { supports(method: unknown): Promise<boolean> }) {
    await this.supports('batch');
  },
});

const all: ClientParts = { ownDecoding: true, classicCalls: true, channel: true };
const versions: readonly {
  readonly what: string;
  readonly clientClass: typeof EventStoreDBClient;
  readonly lacks: keyof ClientParts;
  /** It cannot do anything else either. */
  readonly broken?: true;
}[] = [
  {
    what: 'makes the arguments of a call elsewhere',
    lacks: 'ownDecoding',
    clientClass: otherVersion((client) => {
      const { callArguments } = client;
      delete client['callArguments'];
      Object.defineProperty(client, 'callArguments', { value: callArguments, writable: false });
    }),
  },
  {
    what: 'passes on known options only',
    lacks: 'ownDecoding',
    clientClass: otherVersion((client) => {
      const subscribe = client['subscribeToAll']!.bind(client);
      client['subscribeToAll'] = (options) => {
        const { fromPosition, filter } = options as { fromPosition: unknown; filter: unknown };
        return subscribe({ fromPosition, filter });
      };
    }),
  },
  {
    what: 'converts events in another place',
    lacks: 'ownDecoding',
    clientClass: otherVersion((client) => {
      const subscribe = client['subscribeToAll']!.bind(client);
      client['subscribeToAll'] = (...args) => {
        const subscription = subscribe(...args) as { convertGrpcEvent: unknown };
        const { convertGrpcEvent } = subscription;
        Object.defineProperty(subscription, 'convertGrpcEvent', { get: () => convertGrpcEvent, set: () => {} });
        return subscription;
      };
    }),
  },
  {
    what: 'creates its calls in another way',
    lacks: 'ownDecoding',
    clientClass: otherVersion((client) => {
      const { GRPCStreamCreator } = client;
      Object.defineProperty(client, 'GRPCStreamCreator', { get: () => GRPCStreamCreator, set: () => {} });
    }),
  },
  { what: 'takes the batch way for every append', lacks: 'classicCalls', clientClass: AlwaysBatch, broken: true },
  {
    what: 'hides its channel',
    lacks: 'channel',
    broken: true,
    clientClass: otherVersion((client) => {
      Object.defineProperty(client, 'getChannel', { value: undefined });
    }),
  },
];

it('of the installed package all work as expected', async () => {
  const lines: LogLine[] = [];
  expect(await tryClientParts(recordingLogger(lines))).toEqual(all);
  expect(lines).toEqual([]);
});

describe.each(versions)('a package that $what', ({ clientClass, lacks }) => {
  it('is used without that part, with one warning that names it', async () => {
    const lines: LogLine[] = [];
    expect(await tryClientParts(recordingLogger(lines), clientClass)).toEqual({ ...all, [lacks]: false });
    expect(lines).toEqual([
      {
        level: 'warn',
        fields: { part: lacks, error: expect.any(String) },
        message: expect.stringContaining('public way'),
      },
    ]);
  });
});

describe('a store', () => {
  let server: EventStoreDbServer;
  beforeEach(async () => {
    server = await startEventStoreDb();
  });
  afterEach(() => server.close());

  /** Writes, reads, follows and asks for the time. @returns the warnings */
  async function used(options: Partial<EventStoreDbOptions>): Promise<readonly LogLine[]> {
    const lines: LogLine[] = [];
    const store = openEventStoreDb({ url: server.url, logger: recordingLogger(lines), ...options });
    try {
      for (let round = 0; round < 3; round += 1) await appendAtEnd(store, 'svc-a', commandOf(2));
      expect(await readAll(store, 'svc-a')).toHaveLength(6);
      const { events } = await collectLog(store, 'svc-', 'start', (seen) => seen.length >= 6);
      expect(events).toEqual(await readAll(store, 'svc-a'));
      expect((await store.time())?.at).toBeGreaterThan(Date.now() - 60_000);
      return lines;
    } finally {
      await store.close();
    }
  }

  it.each(versions.filter(({ broken }) => broken === undefined))(
    'works with a package that $what',
    async ({ clientClass }) => {
      expect(await used({ clientClass })).toHaveLength(1);
    },
  );

  it('works without any private part, as the setting says, and warns of nothing', async () => {
    expect(await used({ client: 'public' })).toEqual([]);
  });

  it('has the setting SVC_EVENTSTORE_CLIENT, which is printed', () => {
    expect(readConfig({}).eventStoreClient).toBe('fast');
    expect(readConfig({ SVC_EVENTSTORE_CLIENT: 'public' }).eventStoreClient).toBe('public');
    expect(printableConfig({})).toContain('SVC_EVENTSTORE_CLIENT=fast\n');
    expect(() => readConfig({ SVC_EVENTSTORE_CLIENT: 'slow' })).toThrow(
      'SVC_EVENTSTORE_CLIENT: got "slow": expected fast or public',
    );
  });
});

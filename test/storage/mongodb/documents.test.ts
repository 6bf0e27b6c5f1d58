import { afterEach, beforeEach, expect, it } from 'vitest';
import { ServiceError } from '../../../src/kernel/errors.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { openMongoDb } from '../../../src/storage/mongodb/open-mongodb.js';
import type { Collection, Fields } from '../../../src/storage/read-store.js';
import { mongoDatabase, onMongoServers, type MongoDatabase } from '../contract/mongodb-harness.js';

const awkwardNames = [
  'a.b',
  '$set',
  '__proto__',
  '',
  '_bsontype',
  '_id',
  'toBSON',
  '%',
  '0',
  'nul\0',
  '$',
  '.',
  'length',
];

onMongoServers('documents on MongoDB', (server) => {
  let database: MongoDatabase;
  let collection: Collection;
  beforeEach(async () => {
    database = mongoDatabase(await server());
    collection = await (await database.open()).collection({ name: 'kept', version: 1 });
  });
  afterEach(() => database.close());

  it('keep fields of any name, lists in lists, and ill-formed text', async () => {
    const nested = { $inc: { 'a.b': 1 }, ...JSON.parse('{"__proto__": {"polluted": true}}'), list: [[1, [2]], []] };
    const fields = Object.fromEntries<Fields[string]>([
      ...awkwardNames.map((name): [string, string] => [name, `value of ${name}`]),
      ['nested', nested],
      ['halves', '\ud800 \udc00'],
      ['bytes', new Uint8Array([0, 1, 255])],
    ]);
    await collection.write([{ id: 'a', position: 2 ** 53 - 1, fields }]);
    const document = await collection.get('a');
    expect(document?.position).toBe(2 ** 53 - 1);
    expect(Object.keys(document!.fields).sort()).toEqual(Object.keys(fields).sort());
    for (const [name, value] of Object.entries(fields)) {
      expect(Object.getOwnPropertyDescriptor(document!.fields, name)?.value).toEqual(value);
    }
    expect(JSON.stringify(document!.fields['nested'])).toBe(JSON.stringify(nested));
    expect(Object.getPrototypeOf(document!.fields)).toBe(Object.prototype);
  });

  it('are found by groups with special characters, by long ones and by lists of them', async () => {
    const groups = ['.*', '\\', '$', '$x', 'a.b', '(', '\n', '\0', '\u{1f600}', 'y'.repeat(20_000)];
    const found = await (
      await database.open()
    ).collection({ name: 'named', version: 1, index: { group: '$in.x', order: '_at' } });
    await found.set([
      ...groups.map((group, n) => ({ id: `g${n}`, fields: { '$in.x': group, _at: `${n}` } })),
      { id: 'list', fields: { '$in.x': groups, _at: '' } },
    ]);
    for (const [n, group] of groups.entries()) {
      const items = await found.find({ groups: [group], direction: 'desc', limit: 5 });
      expect(items.map(({ id }) => id)).toEqual([`g${n}`, 'list']);
    }
  });

  it("are refused as the caller's fault when no server would accept one, and the call writes nothing", async () => {
    const large = new Uint8Array(16 * 2 ** 20);
    await expect(
      collection.write([
        { id: 'small', position: 1, fields: {} },
        { id: 'large', position: 1, fields: { large } },
      ]),
    ).rejects.toThrow(RangeError);
    expect(await collection.list(undefined, 5)).toEqual([]);
    await expect(collection.insert([{ id: '', fields: {} }])).rejects.toThrow(RangeError);
  });

  it('are unavailable without a server, and the error is without the password', async () => {
    const failed = await openMongoDb({ url: 'mongodb://user:hunter2@127.0.0.1:1/some', logger: silentLogger }).catch(
      (error: unknown) => error,
    );
    expect(failed).toBeInstanceOf(ServiceError);
    expect((failed as ServiceError).code).toBe('unavailable');
    expect(`${String(failed)} ${String((failed as ServiceError).cause)}`).not.toContain('hunter2');
    await expect(openMongoDb({ url: 'mongodb://u:hunter2@127.0.0.1:1', logger: silentLogger })).rejects.toThrow(
      RangeError,
    );
  });
});

/**
 * A replica set of two for tests: two addresses in front of one FerretDB, one of which claims to be the primary. Like
 * members of a real set, they refuse what only the primary may do, change roles, lose answers, and recognise a write
 * that is repeated under its number. Not replication: both always have the same documents.
 */
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { BSON, ObjectId, type Document } from 'mongodb';
import { startFerretDb } from './ferretdb-process.js';

export interface MongoReplicaSet {
  /** `mongodb://a,b/database?replicaSet=…` */
  url(database: string, options?: string): string;
  /** Makes the other member the primary; connections stay open, as since MongoDB 4.2. */
  failOver(): void;
  faults: {
    /** The next so many writes are done, but their connection is cut instead of an answer. */
    loseAnswers: number;
    /** The next so many writes are done, but no majority confirms them in time. */
    noMajority: number;
    /** False for a server without retryable writes: without sessions the driver repeats nothing. */
    sessions: boolean;
    /** How far the clock of the set is ahead of the client's. */
    clockAheadMs: number;
  };
  /** Commands that the members received, except greetings. */
  readonly seen: Document[];
  close(): Promise<void>;
}

const writes = new Set(['insert', 'update', 'delete', 'create', 'createIndexes', 'drop', 'dropDatabase']);
const greetings = new Set(['hello', 'ismaster', 'isMaster']);
const headerBytes = 16;
const opReply = 1;
const opMsg = 2013;

/** Offset of the document in a message. */
const documentAt = (message: Buffer): number => (message.readInt32LE(12) === opReply ? 36 : headerBytes + 5);

/** Keeps the types of numbers; `promoted` converts them to JavaScript numbers. */
function documentOf(message: Buffer, promoted = false): Document {
  const at = documentAt(message);
  const bytes = message.subarray(at, at + message.readInt32LE(at));
  return BSON.deserialize(bytes, { promoteValues: promoted, promoteLongs: promoted, promoteBuffers: false });
}

/** The message with another document; what follows the document stays. */
function withDocument(message: Buffer, document: Document): Buffer {
  const at = documentAt(message);
  const next = Buffer.concat([
    message.subarray(0, at),
    BSON.serialize(document, { ignoreUndefined: true }),
    message.subarray(at + message.readInt32LE(at)),
  ]);
  next.writeInt32LE(next.length, 0);
  return next;
}

function answerTo(request: Buffer, document: Document): Buffer {
  const header = Buffer.alloc(headerBytes + 5);
  header.writeInt32LE(request.readInt32LE(4), 8);
  header.writeInt32LE(opMsg, 12);
  const answer = Buffer.concat([header, BSON.serialize(document)]);
  answer.writeInt32LE(answer.length, 0);
  return answer;
}

/** Calls back with each complete message, one after the other. */
function onMessages(socket: Socket, handle: (message: Buffer) => Promise<void>): void {
  let buffered = Buffer.alloc(0);
  let work = Promise.resolve();
  socket.on('error', () => undefined);
  socket.on('data', (data) => {
    buffered = Buffer.concat([buffered, data]);
    while (buffered.length >= 4 && buffered.length >= buffered.readInt32LE(0)) {
      const message = Buffer.from(buffered.subarray(0, buffered.readInt32LE(0)));
      buffered = buffered.subarray(message.length);
      work = work.then(() => handle(message)).catch(() => void socket.destroy());
    }
  });
}

/** Requires a built FerretDB. @throws Error when it does not start */
export async function startMongoReplicaSet(): Promise<MongoReplicaSet> {
  const server = await startFerretDb();
  const inner = Number(/:(\d+)$/.exec(server.url)?.[1]);
  const faults = { loseAnswers: 0, noMajority: 0, sessions: true, clockAheadMs: 0 };
  const seen: Document[] = [];
  const members: Server[] = [];
  const ports: number[] = [];
  const sockets = new Set<Socket>();
  /** Answers to writes that have a number. */
  const numbered = new Map<string, Buffer>();
  let primary = 0;
  let election = 1;

  const nameOf = (member: number): string => `127.0.0.1:${ports[member]}`;
  const greeting = (member: number): Document => ({
    setName: 'rs0',
    setVersion: 1,
    hosts: ports.map((_, at) => nameOf(at)),
    me: nameOf(member),
    primary: nameOf(primary),
    ismaster: member === primary,
    isWritablePrimary: member === primary,
    secondary: member !== primary,
    localTime: new Date(Date.now() + faults.clockAheadMs),
    ...(member === primary ? { electionId: new ObjectId(election.toString(16).padStart(24, '0')) } : {}),
    logicalSessionTimeoutMinutes: faults.sessions ? 30 : undefined,
  });

  async function relay(member: number, client: Socket): Promise<void> {
    sockets.add(client);
    const upstream = connect(inner, '127.0.0.1');
    sockets.add(upstream);
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
    let answered = (_: Buffer): void => undefined;
    onMessages(upstream, async (message) => answered(message));
    const ask = (request: Buffer): Promise<Buffer> =>
      new Promise((resolve) => {
        answered = resolve;
        upstream.write(request);
      });

    onMessages(client, async (request) => {
      // The first greeting may have the old form; FerretDB answers in the same form.
      const command = request.readInt32LE(12) === opMsg ? documentOf(request) : { hello: 1 };
      const [name = ''] = Object.keys(command);
      if (greetings.has(name)) {
        const answer = await ask(request.readInt32LE(12) === opMsg ? withDocument(request, plain(command)) : request);
        client.write(withDocument(answer, { ...documentOf(answer), ...greeting(member) }));
        return;
      }
      if (name === 'endSessions') return void client.write(answerTo(request, { ok: 1 }));
      seen.push(documentOf(request, true));
      if (member !== primary) {
        const retry = command['txnNumber'] === undefined ? {} : { errorLabels: ['RetryableWriteError'] };
        const refusal = writes.has(name)
          ? { code: 10107, codeName: 'NotWritablePrimary', errmsg: 'not primary', ...retry }
          : { code: 13435, codeName: 'NotPrimaryNoSecondaryOk', errmsg: 'not primary and secondaryOk=false' };
        return void client.write(answerTo(request, { ok: 0, ...refusal }));
      }
      const key =
        command['txnNumber'] === undefined
          ? undefined
          : `${command['lsid'].id.toString('hex')} ${command['txnNumber']}`;
      const earlierAnswer = key === undefined ? undefined : numbered.get(key);
      let document =
        earlierAnswer === undefined
          ? documentOf(await ask(withDocument(request, plain(command))))
          : documentOf(earlierAnswer);
      if (writes.has(name) && faults.noMajority > 0) {
        faults.noMajority -= 1;
        const wtimeout = { code: 64, codeName: 'WriteConcernFailed', errmsg: 'waiting for replication timed out' };
        document = { ...document, writeConcernError: { ...wtimeout, errInfo: { wtimeout: true } } };
      }
      const answer = answerTo(request, document);
      if (key !== undefined) numbered.set(key, answer);
      if (writes.has(name) && faults.loseAnswers > 0) {
        faults.loseAnswers -= 1;
        client.destroy();
        return;
      }
      client.write(answer);
    });
  }

  for (let member = 0; member < 2; member += 1) {
    const front = createServer((socket) => void relay(member, socket));
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    ports.push((front.address() as AddressInfo).port);
    members.push(front);
  }
  return {
    url: (database, options = '') => `mongodb://${nameOf(0)},${nameOf(1)}/${database}?replicaSet=rs0${options}`,
    failOver() {
      primary = 1 - primary;
      election += 1;
    },
    faults,
    seen,
    async close() {
      for (const socket of sockets) socket.destroy();
      for (const member of members) member.close();
      await server.close();
    },
  };
}

/** A command without the fields that FerretDB does not know. */
function plain(command: Document): Document {
  const { lsid: _session, txnNumber: _number, $clusterTime: _time, ...rest } = command;
  return rest;
}

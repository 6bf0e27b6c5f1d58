/** Hellos that another instance has seen, and what the service learns of its target by several visits (`docs/reality.md`). */
import { once } from 'node:events';
import { createServer, type TLSSocket } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openSharedHellos, type SharedHellos } from '../../src/instance/shared-hellos.js';
import { systemClock } from '../../src/kernel/clock.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { createSelfSigned } from '../../src/security/self-signed.js';
import { createKnownTarget } from '../../src/transport/listener/reality/known-target.js';
import { createTarget } from '../../src/transport/listener/reality/target.js';
import { eventually } from '../support/eventually.js';
import {
  startRealityFixture,
  startTlsTarget,
  targetName,
  type RealityFixture,
  type TlsTarget,
} from '../support/reality-fixture.js';
import { openTemporaryStores, type TemporaryStores } from '../support/temporary-stores.js';
import { createManualClock } from '../support/manual-clock.js';

let target: TlsTarget;
let stores: TemporaryStores;
const opened: { close(): Promise<void> }[] = [];
beforeEach(async () => {
  target = await startTlsTarget();
  stores = await openTemporaryStores(createManualClock(), silentLogger);
});
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
  await target.close();
  await stores.close();
});

async function shared(away = false): Promise<SharedHellos> {
  const { readStore } = stores;
  const hellos = await openSharedHellos({
    readStore,
    logger: silentLogger,
    away: () => away,
    deletionTime: () => undefined,
  });
  opened.push(hellos);
  return hellos;
}

const keys = generateX25519();
async function instance(hellos: SharedHellos): Promise<RealityFixture> {
  const fixture = await startRealityFixture(target.port, { keys }, systemClock, [], hellos);
  opened.unshift(fixture);
  return fixture;
}

/** An agent's hello, as somebody on the way has recorded it. */
async function recorded(at: RealityFixture): Promise<Buffer> {
  const hello = at.hello();
  const socket = await at.dial();
  socket.write(hello);
  await once(socket, 'data');
  socket.destroy();
  return hello;
}

test('a hello that one instance has seen is a stranger’s at the other', async () => {
  const [one, other] = [await instance(await shared()), await instance(await shared())];
  const hello = await recorded(one);
  const prober = await other.dial();
  prober.write(hello);
  await once(prober, 'data');
  await eventually(() => other.listener.refusals.map(({ reason }) => reason)).toEqual(['reality_replayed']);
  expect((await other.open()).ok).toBe(true);
});

test('an agent gets in while the store is away, and while it does not answer', async () => {
  const away = await instance(await shared(true));
  expect((await away.open()).ok).toBe(true);
  const silent = await instance({ seen: () => new Promise(() => undefined), close: async () => undefined });
  expect((await silent.open()).ok).toBe(true);
});

test('hellos leave the store when their time is over', async () => {
  const hellos = await stores.readStore.collection({
    name: 'reality_hellos',
    version: 1,
    index: { group: 'kind', order: 'until' },
  });
  await hellos.insert([{ id: 'old', fields: { kind: 'hello', until: '2020-01-01T00:00:00.000Z' } }]);
  await hellos.insert([{ id: 'new', fields: { kind: 'hello', until: '2040-01-01T00:00:00.000Z' } }]);
  const deletionTime = (): number => Date.UTC(2030, 0);
  const { readStore } = stores;
  opened.push(
    await openSharedHellos({ readStore, logger: silentLogger, away: () => false, deletionTime, purgeEveryMs: 5 }),
  );
  await eventually(async () => (await hellos.list(undefined, 10)).map(({ id }) => id)).toEqual(['new']);
});

test('what the target sends after a handshake is what most visits have found', async () => {
  const now = Date.now();
  const { certificatePem: cert, privateKeyPem: key } = await createSelfSigned({
    commonName: targetName,
    subjectAltNames: [targetName],
    notBefore: now - 86_400_000,
    notAfter: now + 86_400_000,
  });
  let visits = 0;
  // The first visitor gets a word more than the others.
  const server = createServer({ cert, key }, (socket: TLSSocket) => {
    socket.on('error', () => undefined);
    if ((visits += 1) === 1) socket.write('a maintenance page');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const dialled = createTarget({ host: '127.0.0.1', port });
  const after = createKnownTarget({ target: dialled, serverNames: [], clock: systemClock, watchMs: 300 });
  opened.push({
    async close() {
      dialled.close();
      await after.close();
      server.close();
    },
  });
  const lengths = await after.lengths(targetName, 'none', 'sha384');
  expect(visits).toBe(3);
  // Node's two tickets.
  expect(lengths).toHaveLength(2);
});

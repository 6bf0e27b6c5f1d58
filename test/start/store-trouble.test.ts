/** The whole service before an event store that does not accept it: what its log and `/readyz` say, and how it goes on. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { freePorts } from '../../scripts/stack/process.js';
import { startApp, type RunningApp } from '../../src/app/app.js';
import { readConfig } from '../../src/app/config/config.js';
import { startEventStoreDb, type EventStoreDbServer } from '../servers/eventstoredb/server.js';
import { startTlsFront, type TlsFront } from '../servers/tls-front.js';
import { recordingLogger, type LogLine } from '../storage/eventstoredb/fixture.js';
import { createCertificate } from '../support/certificate.js';
import { eventually } from '../support/eventually.js';

let folder: string;
let server: EventStoreDbServer;
let front: TlsFront;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'store-trouble-'));
  const certificate = createCertificate('test', undefined, ['localhost']);
  writeFileSync(join(folder, 'ca.crt'), certificate.cert);
  server = await startEventStoreDb();
  front = await startTlsFront(server.port, certificate);
});
afterEach(async () => {
  await front.close();
  await server.close();
  rmSync(folder, { recursive: true });
});

it('a wrong password is named in the log and by /readyz, at the start and later, and is waited out', async () => {
  const [port] = await freePorts(1);
  const lines: LogLine[] = [];
  const url = `http://127.0.0.1:${port}`;
  const ready = async (): Promise<readonly string[]> => {
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(10_000) });
    return ((await answer.json()) as { reasons: string[] }).reasons;
  };
  const refused =
    'the event store does not accept the user name or password in SVC_EVENTSTORE_URL: correct one of the two sides';
  const named = (): LogLine[] =>
    lines.filter(({ level, fields }) => level === 'error' && 'problem' in fields && fields.problem === refused);
  const right = { username: 'control', password: 's3cret' };

  server.faults.admin = { username: 'control', password: 'another' };
  const config = readConfig({
    SVC_HTTP_LISTEN_ADDR: `127.0.0.1:${port}`,
    SVC_REALITY_LISTEN_ADDR: '127.0.0.1:0',
    SVC_DATA_DIR: join(folder, 'data'),
    SVC_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    SVC_READ_STORE: 'embedded',
    // By name, because Node 26 offers no IP as the name of a TLS server.
    SVC_EVENTSTORE_URL: `kurrentdb://control:s3cret@localhost:${front.port}?tlsCAFile=${join(folder, 'ca.crt')}`,
  });
  let app: RunningApp | undefined;
  const starting = startApp(config, recordingLogger(lines), () => undefined).then((running) => {
    app = running;
  });
  try {
    await eventually(ready).toContain(refused);
    expect(named().map(({ message }) => message)).toEqual([
      expect.stringMatching(/^EventStoreDB at kurrentdb:\/\/localhost:\d+ cannot be used before somebody acts$/),
    ]);
    server.faults.admin = right;
    await starting;
    await eventually(ready).toEqual([]);

    server.faults.admin = { username: 'control', password: 'changed' };
    await eventually(ready).toContain(refused);
    server.faults.admin = right;
    await eventually(ready).toEqual([]);
    expect(named()).toHaveLength(2);
    expect(JSON.stringify(lines)).not.toContain('s3cret');
  } finally {
    server.faults.admin = right;
    await starting;
    await app?.close();
  }
});

/**
 * A wrong password, missing rights and certificates are told from a server that is away, in sentences that say what to do
 * and contain no secret. Over real TLS.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { StoreAccessError, tlsError } from '../../../src/storage/store-access.js';
import { startEventStoreDb, type EventStoreDbServer } from '../../servers/eventstoredb/server.js';
import { startTlsFront, type TlsFront } from '../../servers/tls-front.js';
import { createCertificate } from '../../support/certificate.js';
import { appendAtEnd, commandOf } from '../contract/appending.js';
import { recordingLogger, type LogLine } from './fixture.js';

const folder = mkdtempSync(join(tmpdir(), 'trouble-'));
const [ca, otherCa] = [join(folder, 'ca.crt'), join(folder, 'other.crt')];
let server: EventStoreDbServer;
let front: TlsFront;
beforeAll(async () => {
  const certificate = createCertificate();
  writeFileSync(ca, certificate.cert);
  writeFileSync(otherCa, createCertificate('another').cert);
  server = await startEventStoreDb();
  server.faults.admin = { username: 'admin', password: 's3cret' };
  server.faults.stranger = { username: 'joe', password: 's3cret' };
  front = await startTlsFront(server.port, certificate);
});
afterAll(async () => {
  await front.close();
  await server.close();
  rmSync(folder, { recursive: true });
});

const secure = (): string => `127.0.0.1:${front.port}`;
const plain = (): string => `127.0.0.1:${server.port}`;
const quick = { readRetryMs: 0, handshakeMs: 2_000 };
const asOften = 'maxDiscoverAttempts=1&discoveryInterval=1';

/** What two pings in a row say: the second begins with the search for a reason. */
async function said(url: string): Promise<{ readonly sentences: readonly unknown[]; readonly lines: LogLine[] }> {
  const lines: LogLine[] = [];
  const store = openEventStoreDb({ url, logger: recordingLogger(lines), tuning: quick });
  const ping = (): Promise<unknown> =>
    store.ping().then(
      () => 'usable',
      (error: unknown) => (error instanceof StoreAccessError ? error.message : 'away'),
    );
  try {
    return { sentences: [await ping(), await ping()], lines };
  } finally {
    await store.close();
  }
}

describe('access to the event store', () => {
  const untrusted =
    "the certificate of the event store is not signed by a trusted authority: name the authority's certificate with tlsCAFile in SVC_EVENTSTORE_URL";
  const cases: readonly (readonly [what: string, url: () => string, sentence: string])[] = [
    ['a right password', () => `esdb://admin:s3cret@${secure()}?tlsCAFile=${ca}`, 'usable'],
    [
      'a wrong password',
      () => `esdb://admin:wr0ng@${secure()}?tlsCAFile=${ca}`,
      'the event store does not accept the user name or password in SVC_EVENTSTORE_URL: correct one of the two sides',
    ],
    [
      'a user without rights',
      () => `esdb://joe:s3cret@${secure()}?tlsCAFile=${ca}`,
      'the user in SVC_EVENTSTORE_URL has too few permissions in the event store: make it a member of the group $admins',
    ],
    ['no authority', () => `esdb://admin:s3cret@${secure()}`, untrusted],
    ['another authority', () => `esdb://admin:s3cret@${secure()}?tlsCAFile=${otherCa}`, untrusted],
    ['no authority, by discovery', () => `esdb+discover://admin:s3cret@${secure()}?${asOften}`, untrusted],
    ['no authority, in a cluster', () => `esdb://admin:s3cret@127.0.0.1:9,${secure()}?${asOften}`, untrusted],
    [
      'another name',
      () => `esdb://admin:s3cret@localhost:${front.port}?tlsCAFile=${ca}`,
      'the certificate of the event store is for another name: use a name from the certificate in SVC_EVENTSTORE_URL',
    ],
    [
      'TLS for a server without',
      () => `esdb://admin:s3cret@${plain()}`,
      'the event store answers without TLS: add tls=false to SVC_EVENTSTORE_URL, or give the store a certificate',
    ],
    [
      'tls=false for a server with TLS',
      () => `esdb://admin:s3cret@${secure()}?tls=false`,
      'the event store answers only with TLS: leave tls=false out of SVC_EVENTSTORE_URL',
    ],
    ['a server that is away', () => `esdb://admin:s3cret@127.0.0.1:9?tlsCAFile=${ca}`, 'away'],
    ['a server that is away, without TLS', () => 'esdb://127.0.0.1:9?tls=false', 'away'],
  ];
  it.concurrent.each(cases)('with %s', async (_, url, sentence) => {
    const { sentences, lines } = await said(url());
    expect(sentences).toEqual([sentence, sentence]);
    expect(JSON.stringify(lines)).not.toMatch(/s3cret|wr0ng/);
  });

  it('is usable again after the trouble, without being opened again', async () => {
    const store = openEventStoreDb({
      url: `esdb://admin:new@${secure()}?tlsCAFile=${ca}`,
      logger: recordingLogger([]),
      tuning: quick,
    });
    const { admin } = server.faults;
    try {
      await expect(store.ping()).rejects.toBeInstanceOf(StoreAccessError);
      server.faults.admin = { username: 'admin', password: 'new' };
      await store.ping();
      await appendAtEnd(store, 'svc-a', commandOf(1));
    } finally {
      server.faults.admin = admin;
      await store.close();
    }
  });
});

describe('an error of a TLS connection', () => {
  const of = (code: string, message: string): string | undefined =>
    tlsError(new Error('wrapped', { cause: Object.assign(new Error(message), { code }) }), {
      name: 'the store',
      variable: 'URL',
    })?.message;
  it.each([
    ['CERT_HAS_EXPIRED', 'certificate has expired', /not valid at this time/],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'self-signed certificate in certificate chain', /tlsCAFile in URL/],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'unable to verify the first certificate', /tlsCAFile in URL/],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'unable to get local issuer certificate', /tlsCAFile in URL/],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'tlsv13 alert certificate required', /client certificate/],
  ])('%s says what to do', (code, message, sentence) => {
    expect(of(code, message)).toMatch(sentence);
    // Some libraries pass on the text alone.
    expect(of('', message)).toMatch(sentence);
  });

  it.each([
    ['ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:9'],
    ['ENOTFOUND', 'getaddrinfo ENOTFOUND es1'],
    ['ECONNRESET', 'read ECONNRESET'],
  ])('%s is a server that is away', (code, message) => {
    expect(of(code, message)).toBeUndefined();
  });
});

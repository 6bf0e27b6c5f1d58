/** The URL of the store: what it may look like, what it cannot change, and that no message repeats a part of it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { readConfig } from '../../../src/app/config/config.js';
import { ConfigError } from '../../../src/app/config/variables.js';
import { readAddress } from '../../../src/storage/eventstoredb/address.js';
import { clientSettings } from '../../../src/storage/eventstoredb/connection.js';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { startEventStoreDb } from '../../servers/eventstoredb/server.js';
import { appendAtEnd, commandOf, readAll } from '../contract/appending.js';
import { recordingLogger, type LogLine } from './fixture.js';

const schemes = ['esdb', 'kurrentdb', 'kdb', 'kurrent'] as const;
const masterKey = { SVC_MASTER_KEY: Buffer.alloc(32).toString('base64') };

describe('the URL of the store', () => {
  it.each(schemes)('may begin with %s:// and %s+discover://, and is used in each', async (scheme) => {
    const host = { address: 'a', port: 2113 };
    expect(readAddress(`${scheme}://u:p@a`)).toMatchObject({ hosts: [host], dnsDiscovery: false, tls: true });
    expect(readAddress(`${scheme.toUpperCase()}+discover://a:2113/?TLS=false`)).toMatchObject({
      hosts: [host],
      dnsDiscovery: true,
      tls: false,
    });
    const env = { ...masterKey, SVC_READ_STORE: 'embedded', SVC_EVENTSTORE_URL: `${scheme}+discover://a` };
    expect(readConfig(env).eventStoreUrl).toBeDefined();
    const server = await startEventStoreDb();
    const url = server.url.replace('esdb', scheme);
    const store = openEventStoreDb({ url, logger: recordingLogger([]) });
    try {
      await appendAtEnd(store, 'svc-a', commandOf(2));
      expect(await readAll(store, 'svc-a')).toHaveLength(2);
    } finally {
      await store.close();
      await server.close();
    }
  });

  it('names a user, hosts and options, percent-encoded', () => {
    const text = 'esdb://us%40er:p:a%2Fss%3F@one:1,[::1]:2,three?connectionName=a%26b&gossip_timeout=7';
    expect(readAddress(text)).toMatchObject({
      user: { username: 'us@er', password: 'p:a/ss?' },
      hosts: [
        { address: 'one', port: 1 },
        { address: '[::1]', port: 2 },
        { address: 'three', port: 2113 },
      ],
      options: { connectionName: 'a&b', gossipTimeout: 7 },
      unused: [],
    });
  });

  it('cannot override what the adapter depends on', () => {
    const overriding = 'throwOnAppendFailure=false&nodePreference=follower&keepAliveInterval=-1&keepAliveTimeout=-1';
    const forced = { throwOnAppendFailure: true, keepAliveInterval: 10_000, keepAliveTimeout: 10_000 };
    const single = readAddress(`esdb://h:2113?tls=false&${overriding}`);
    expect(single.unused).toEqual([]);
    expect(clientSettings(single)).toEqual({ ...forced, endpoint: { address: 'h', port: 2113 } });
    const discovery = { ...forced, nodePreference: 'leader', gossipTimeout: 2 };
    expect(clientSettings(readAddress(`esdb+discover://u:p@h?${overriding}`))).toEqual({
      ...discovery,
      discover: { address: 'h', port: 2113 },
    });
    expect(clientSettings(readAddress(`kdb://u:p@h,i:1?${overriding}&gossipTimeout=9&maxDiscoverAttempts=3`))).toEqual({
      ...discovery,
      gossipTimeout: 9,
      maxDiscoverAttempts: 3,
      endpoints: [
        { address: 'h', port: 2113 },
        { address: 'i', port: 1 },
      ],
    });
  });

  it('names a user when TLS is on', () => {
    expect(() => readAddress('esdb://h:2113')).toThrow('needs user:password@ when TLS is on');
    expect(() => readAddress('esdb://h,i?userCertFile=/dev/null&userKeyFile=/dev/null')).toThrow(
      'needs user:password@',
    );
    expect(readAddress('esdb://h:2113?tls=false').user).toBeUndefined();
  });

  it.each([
    ['another scheme', 'mongodb://admin:s3cret@h'],
    ['no host', 'esdb://admin:s3cret@'],
    ['a host that is none', 'esdb://admin:s3cret@a b:x'],
    ['a port that is none', 'esdb://admin:s3cret@h:70000'],
    ['a user without a password', 'esdb://s3cret@h'],
    ['a password that is not encoded', 'esdb://admin:%s3cret@h'],
    ['a slash in the password', 'esdb://admin:s3cret/x?@h'],
    ['an option without a value', 'esdb://admin:s3cret@h?tls'],
    ['a wrong number', 'esdb://admin:s3cret@h?gossipTimeout=soon'],
    ['a wrong flag', 'esdb://admin:s3cret@h?tls=maybe'],
    ['an unverified certificate', 'esdb://admin:s3cret@h?tlsVerifyCert=false'],
    ['a certificate without its key', 'esdb://admin:s3cret@h?userCertFile=/dev/null'],
    ['a file that is not there', 'esdb://admin:s3cret@h?tlsCAFile=/s3cret/no.crt'],
  ])('is refused for %s, in words that repeat nothing of it', (_, url) => {
    let thrown: unknown;
    try {
      readAddress(url);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(TypeError);
    expect(String(thrown)).not.toContain('s3cret');
  });

  it('is refused by the configuration, without its value, when its scheme is none of these', () => {
    const read = (): unknown => readConfig({ ...masterKey, SVC_EVENTSTORE_URL: 'http://admin:s3cret@h' });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(/SVC_EVENTSTORE_URL: got \(secret\): expected esdb:\/\/… or kurrentdb:\/\/…/);
  });

  describe('with files and unknown options', () => {
    const folder = mkdtempSync(join(tmpdir(), 'address-'));
    afterEach(() => {
      rmSync(folder, { recursive: true, force: true });
      vi.restoreAllMocks();
    });

    it('reads the authority of the certificates', () => {
      const ca = join(folder, 'ca.crt');
      writeFileSync(ca, 'the authority');
      const { credentials } = readAddress(`esdb://u:p@h?tlsCAFile=${encodeURIComponent(ca)}`);
      expect(credentials).toEqual({ rootCertificate: Buffer.from('the authority') });
      expect(readAddress(`esdb://h?tls=false&tlsCAFile=${ca}`).credentials).toEqual({ insecure: true });
    });

    it('is not printed for an option that nobody knows: the log names the option alone', async () => {
      const printed: unknown[] = [];
      onTestFinished(() => void vi.restoreAllMocks());
      for (const how of ['warn', 'error', 'log'] as const) {
        vi.spyOn(console, how).mockImplementation((...args: unknown[]) => void printed.push(...args));
      }
      const server = await startEventStoreDb();
      const lines: LogLine[] = [];
      const url = `${server.url.replace('://', '://admin:s3cret@')}&newOption=1`;
      const store = openEventStoreDb({ url, logger: recordingLogger(lines) });
      try {
        await store.ping();
      } finally {
        await store.close();
        await server.close();
      }
      expect(printed).toEqual([]);
      expect(lines).toEqual([expect.objectContaining({ level: 'warn', fields: { options: ['newOption'] } })]);
    });
  });
});

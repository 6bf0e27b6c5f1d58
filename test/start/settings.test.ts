/**
 * The settings: their names, which of them belong together, and the error of each, which names it and never shows a
 * secret.
 */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/app/config/config.js';
import { unknownVariables } from '../../src/app/config/variables.js';
import { printableConfig } from '../../src/app/config/shown.js';
import { warnOfExposure } from '../../src/app/exposure.js';
import { version } from '../../src/kernel/version.js';
import { silentLogger } from '../../src/kernel/logger.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-settings-'));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

test.each([
  ['SVC_METRIC_TOKEN', 'SVC_METRICS_TOKEN'],
  ['SVC_METRICS_TOEKN', 'SVC_METRICS_TOKEN'],
  ['SVC_METRICS_TOKEN_FIL', 'SVC_METRICS_TOKEN_FILE'],
  ['SVC_AGENT_PROXY_FORM', 'SVC_AGENT_PROXY_FROM'],
])('%s is refused and %s is named', (name, meant) => {
  expect(() => readConfig({ [name]: 'x' })).toThrow(`${name}: not a setting; expected ${meant}?`);
});

test('unknown names further away are reported, and names of others are not', () => {
  const of = (...names: readonly string[]) => unknownVariables(Object.fromEntries(names.map((name) => [name, 'x'])));
  expect(of('SVC_COLOUR', 'PATH', 'SVC_HTTP_LISTEN_ADDR')).toEqual(['SVC_COLOUR']);
  const others = [
    'SVC_SERVICE_HOST',
    'SVC_SERVICE_PORT_REST',
    'SVC_PORT',
    'SVC_PORT_8081_TCP_ADDR',
    'SVC_MY_SERVICE_HOST',
  ];
  expect(of(...others, 'SVC_CONTROL_PSK', 'SVC_AGENT_ID', 'SVC_TEST_SEED', 'SVC_SERVER', 'SVC_TOKEN')).toEqual([]);
  expect(of('SVC_WEBHOOK_ALLOW', 'SVC_HISTORY')).toEqual([]);
  expect(unknownVariables({ SVC_COLOUR: '' })).toEqual([]);
});

test.each([
  ['gateway:50%off', 'expected a user and a password in which % is written %25, as in every URL'],
  [':50%25off', 'expected a user before the password'],
])('SVC_SMTP_URL with %s is refused without being shown', (credentials, expected) => {
  const env = { SVC_SMTP_URL: `smtps://${credentials}@mail.example`, SVC_SMTP_FROM: 'gateway@example.com' };
  expect(() => readConfig(env)).toThrow(`SVC_SMTP_URL: got (secret): ${expected}`);
});

test('a secret may stand in a file, without its final line break, and never in both places', async () => {
  const file = join(folder, 'token');
  await writeFile(file, 'scrape-me-often\n');
  const env = { SVC_METRICS_TOKEN_FILE: file };
  expect(readConfig(env).http.metricsToken).toBe('scrape-me-often');
  expect(printableConfig(env)).toContain('SVC_METRICS_TOKEN=***');
  expect(() => readConfig({ ...env, SVC_METRICS_TOKEN: 'scrape-me-too' })).toThrow(
    'SVC_METRICS_TOKEN and SVC_METRICS_TOKEN_FILE: expected one of them',
  );
  await writeFile(file, 'short\n');
  expect(() => readConfig(env)).toThrow('SVC_METRICS_TOKEN: got (secret): expected at least 8 characters');
  // No header could carry it as a bearer token.
  expect(() => readConfig({ SVC_METRICS_TOKEN: 'scrape me!' })).toThrow(
    /^SVC_METRICS_TOKEN: got \(secret\): expected only letters, digits and /,
  );
});

test('what agents are told to connect to is an endpoint that they can read', () => {
  const told = (text: string) => readConfig({ SVC_AGENT_PUBLIC_ENDPOINT: text }).agents.publicEndpoint;
  expect(told('http://gateway.example:8443')).toBe('http://gateway.example:8443');
  expect(() => told('https://gateway.example')).toThrow(
    'SVC_AGENT_PUBLIC_ENDPOINT: got "https://gateway.example": expected http://host:port or reality://',
  );
});

test.each([
  ['a public address', { SVC_HTTP_LISTEN_ADDR: '0.0.0.0:8081' }, 2],
  [
    'a public address with a metrics token',
    { SVC_HTTP_LISTEN_ADDR: '0.0.0.0:8081', SVC_METRICS_TOKEN: 'scrape-me' },
    1,
  ],
  ['loopback', { SVC_HTTP_LISTEN_ADDR: '127.0.0.1:8081' }, 0],
  ['loopback of IPv6', { SVC_HTTP_LISTEN_ADDR: '[::1]:8081' }, 0],
])('a start on %s warns of what is open', (_, env, warnings) => {
  const said: string[] = [];
  warnOfExposure(readConfig(env), { ...silentLogger, warn: (_fields, message) => said.push(message) });
  expect(said).toHaveLength(warnings);
});

test('the version is the one of package.json', async () => {
  const manifest = JSON.parse(await readFile('package.json', 'utf8')) as { readonly version: string };
  expect(version).toBe(manifest.version);
});

test('a tree without the compiler is started as it was built', async () => {
  const { scripts } = JSON.parse(await readFile('package.json', 'utf8')) as {
    readonly scripts: Record<string, string>;
  };
  expect(scripts['start']).toMatch(/^npm run --silent built && exec node /);
  const options = { cwd: folder, stdio: 'pipe', timeout: 60_000 } as const;
  expect(() => execFileSync('sh', ['-c', scripts['built'] ?? 'false'], options)).not.toThrow();
});

describe('balancers', () => {
  test('no balancer is believed unless it is set, and --print-config shows what is', () => {
    expect(readConfig({}).agents.proxyFrom).toEqual([]);
    const env = { SVC_AGENT_PROXY_FROM: '10.0.0.0/8, 2001:db8::1' };
    expect(readConfig(env).agents.proxyFrom).toEqual(['10.0.0.0/8', '2001:db8::1']);
    expect(printableConfig(env)).toContain('SVC_AGENT_PROXY_FROM=10.0.0.0/8, 2001:db8::1');
  });

  test.each(['10.0.0.0/33', 'balancer', '10.0.0.0/8/8', '2001:db8::/129', '10.0.0.0/', 'fe80::1%eth0', '10.0.0.0/-1'])(
    '%s is refused by the name of the setting',
    (value) => {
      expect(() => readConfig({ SVC_AGENT_PROXY_FROM: value })).toThrow(
        `SVC_AGENT_PROXY_FROM: got "${value}": expected comma-separated CIDRs, got "${value}"`,
      );
    },
  );
});

describe('where the read models are', () => {
  const log = {
    SVC_EVENTSTORE_URL: 'esdb://127.0.0.1:2113',
    SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
  };
  const mongo = { SVC_MONGODB_URL: 'mongodb://127.0.0.1/svc' };

  test('an external log without an external read store is refused, with what to do about it', () => {
    expect(() => readConfig(log)).toThrow(
      /^SVC_MONGODB_URL: required with SVC_EVENTSTORE_URL, .* for the only instance on that log, set SVC_READ_STORE=embedded$/,
    );
  });

  test('SVC_READ_STORE=embedded says that this is the only instance on that log', () => {
    expect(readConfig({ ...log, SVC_READ_STORE: 'embedded' }).readStoreHere).toBe(true);
    expect(readConfig({ ...log, ...mongo }).readStoreHere).toBe(false);
    expect(readConfig({ SVC_READ_STORE: 'embedded' }).readStoreHere).toBe(false);
  });

  test.each([
    ['another value', { ...log, SVC_READ_STORE: 'mongodb' }, 'SVC_READ_STORE: got "mongodb": expected embedded'],
    [
      'a database beside it',
      { ...log, ...mongo, SVC_READ_STORE: 'embedded' },
      'SVC_READ_STORE and SVC_MONGODB_URL: expected one of them',
    ],
  ])('%s is refused', (_, env, sentence) => {
    expect(() => readConfig(env)).toThrow(sentence);
  });
});

describe('the settings of REALITY', () => {
  const key = Buffer.alloc(32, 7).toString('base64url');
  const good = {
    SVC_REALITY_PRIVATE_KEY: key,
    SVC_REALITY_SERVER_NAMES: 'www.example.com, Example.com',
    SVC_REALITY_SHORT_IDS: '0123ab,FF',
    SVC_REALITY_TARGET: 'www.example.com:443',
  };

  test('are read into what the listener needs', () => {
    expect(readConfig(good).agents.reality).toMatchObject({
      serverNames: ['www.example.com', 'example.com'],
      shortIds: ['0123ab', 'ff'],
      target: { host: 'www.example.com', port: 443 },
      maxTimeDiffMs: 60_000,
      allowH2c: false,
    });
    const more = { ...good, SVC_REALITY_MAX_TIME_DIFF_MS: '5000', SVC_REALITY_ALLOW_H2C: 'true' };
    expect(readConfig(more).agents.reality).toMatchObject({ maxTimeDiffMs: 5_000, allowH2c: true });
    expect(readConfig({}).agents.reality).toBeUndefined();
  });

  test.each(Object.keys(good))('without %s the start is refused', (name) => {
    const start = (): unknown => readConfig({ ...good, [name]: undefined });
    expect(start).toThrow(`${name}: required, because `);
  });

  test.each([
    ['SVC_REALITY_PRIVATE_KEY', 'short', 'expected 32 bytes in base64url without padding, as reality:keygen prints'],
    ['SVC_REALITY_PRIVATE_KEY', `${key}=`, 'expected 32 bytes in base64url without padding'],
    ['SVC_REALITY_SERVER_NAMES', ' , ', 'expected comma-separated host names'],
    ['SVC_REALITY_SERVER_NAMES', 'a b', 'got "a b"'],
    ['SVC_REALITY_SHORT_IDS', 'abc', 'an even number of 2 to 16 hexadecimal digits, got "abc"'],
    ['SVC_REALITY_SHORT_IDS', '0123456789abcdef01', 'an even number of 2 to 16 hexadecimal digits'],
    ['SVC_REALITY_TARGET', 'www.example.com', 'expected host:port'],
    ['SVC_REALITY_MAX_TIME_DIFF_MS', '0', 'expected a whole number from 1000 to 3600000'],
    ['SVC_REALITY_ALLOW_H2C', 'yes', 'expected true or false'],
  ])('%s=%s is refused: %s', (name, value, expected) => {
    const start = (): unknown => readConfig({ ...good, [name]: value });
    expect(start).toThrow(`${name}: `);
    expect(start).toThrow(expected);
    if (name === 'SVC_REALITY_PRIVATE_KEY') expect(start).not.toThrow(value);
  });

  test('the private key is masked where the settings are printed', () => {
    const printed = printableConfig(good);
    expect(printed).toContain('SVC_REALITY_PRIVATE_KEY=***');
    expect(printed).toContain('SVC_REALITY_TARGET=www.example.com:443');
    expect(printed).not.toContain(key);
  });
});

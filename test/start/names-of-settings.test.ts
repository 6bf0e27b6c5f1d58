/** The names of variables: which are settings, which are misspelled, and which belong to somebody else. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readConfig } from '../../src/app/config/config.js';
import { printableConfig, unknownVariables } from '../../src/app/config/variables.js';
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
  expect(() => execFileSync('sh', ['-c', scripts['built'] ?? 'false'], { cwd: folder, stdio: 'pipe' })).not.toThrow();
});

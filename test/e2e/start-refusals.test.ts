/** What stops a start: each cause gives one clear sentence, without a secret in it. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { freePorts, startProgram } from '../../scripts/stack/process.js';
import { prepareService } from '../../scripts/stack/service.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-start-'));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

async function run(env: Readonly<Record<string, string>>, args: readonly string[] = []): Promise<Ended> {
  const program = startProgram('main', { SVC_DATA_DIR: folder, ...env }, args);
  onTestFinished(() => void program.child.kill('SIGKILL'));
  await once(program.child, 'close');
  return { code: program.child.exitCode, output: program.output() };
}

async function startOnce(env: Readonly<Record<string, string>>): Promise<Ended> {
  const [http, control] = await freePorts(2);
  const listen = { SVC_HTTP_LISTEN_ADDR: `127.0.0.1:${http}`, SVC_REALITY_LISTEN_ADDR: `127.0.0.1:${control}` };
  return run({ ...listen, ...env });
}

test('each wrong setting is named, with its value and what was expected; no secret is', async () => {
  const { code, output } = await startOnce({
    SVC_TOKEN_TTL_SECS: 'soon',
    SVC_ADMIN_PASSWORD: 'tooshort',
    SVC_METRICS_TOKEN_FILE: join(folder, 'missing'),
  });
  expect(code).toBe(1);
  expect(output).toContain('SVC_TOKEN_TTL_SECS: got "soon": expected a whole number');
  expect(output).toContain('SVC_ADMIN_PASSWORD: got (secret): expected 12 to 256 characters');
  expect(output).toContain('SVC_METRICS_TOKEN_FILE: cannot read');
  expect(output).toContain('(ENOENT): expected a file with the value');
  expect(output).not.toContain('tooshort');
});

test.each([
  [['--version'], 0, /^gateway-control \d+\.\d+\.\d+\+\S+ \(compiler version \d+, format \d+\)$/],
  [['--help'], 0, /SVC_HTTP_LISTEN_ADDR \(0\.0\.0\.0:8081\)/],
  [['--verbose'], 2, /^--verbose: unknown argument; expected --help, --version, --print-config, --print-unit or none$/],
])('%s is answered without a start', async (args, expected, said) => {
  const { code, output } = await run({}, args);
  expect(code).toBe(expected);
  expect(output.trim()).toMatch(said);
  expect(await readdir(folder)).toEqual([]);
});

test('external stores without a master key are refused, and no key is created', async () => {
  const { code, output } = await startOnce({ SVC_MONGODB_URL: 'mongodb://user:hidden@127.0.0.1:1/svc' });
  expect(code).toBe(1);
  expect(output).toContain('SVC_MASTER_KEY or SVC_MASTER_KEY_FILE: required with');
  expect(output).not.toContain('hidden');
  await expect(readFile(join(folder, 'master.key'))).rejects.toThrow();
});

test.each([
  ['mongodb://svc:100%s3cret@127.0.0.1:1/svc', '(MongoParseError: URI malformed)'],
  ['mongodb://svc:a@s3cret]/@127.0.0.1:1/svc', 'in a password\n'],
  ['mongodb://svc:s3cret@127.0.0.1:1/svc?retries=2', 'option retries is not supported'],
])('a MongoDB URL that the driver cannot use is refused by the name of its setting: %s', async (url, told) => {
  const { code, output } = await startOnce({
    SVC_MASTER_KEY: randomBytes(32).toString('base64'),
    SVC_MONGODB_URL: url,
  });
  expect(code).toBe(1);
  expect(output).toContain('SVC_MONGODB_URL: expected mongodb://host:port/database, with %25 for % and %40 for @');
  expect(output).toContain(told);
  expect(output).not.toMatch(/s3cret|^ {4}at /m);
});

test('a data folder is refused while another process uses it, then under another master key, without one, and of a newer version', async () => {
  const service = await prepareService({ dataDir: folder });
  await service.start();
  try {
    const { code, output } = await startOnce({});
    expect(code).toBe(1);
    expect(output).toMatch(/in use by another process/);
  } finally {
    await service.stop();
  }
  const otherKey = Buffer.alloc(32, 7).toString('base64');
  const other = await startOnce({ SVC_MASTER_KEY: otherKey });
  expect(other.code).toBe(1);
  expect(other.output).toContain('is not the one that the keyring of this installation is wrapped by');
  expect(other.output).not.toContain(otherKey);

  const key = join(folder, 'master.key');
  await rename(key, `${key}.kept`);
  const lost = await startOnce({});
  expect(lost.code).toBe(1);
  expect(lost.output).toMatch(/master key/);
  // No new one takes its place.
  await expect(readFile(key)).rejects.toThrow();
  await rename(`${key}.kept`, key);

  const file = join(folder, 'format.json');
  const format = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;
  await writeFile(file, JSON.stringify({ ...format, format: 999 }));
  const newer = await startOnce({});
  expect(newer.code).toBe(1);
  expect(newer.output).toMatch(/newer/);
});

test('an address in use is refused by name, that of REST before anything is written', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const address = `127.0.0.1:${(other.address() as AddressInfo).port}`;
  try {
    const { code, output } = await startOnce({ SVC_HTTP_LISTEN_ADDR: address });
    expect(code).toBe(1);
    expect(output).toContain(`Nothing can listen on SVC_HTTP_LISTEN_ADDR ${address}: `);
    expect(output).toContain('EADDRINUSE');
    expect(await readdir(folder)).toEqual([]);
    const agents = await startOnce({ SVC_REALITY_LISTEN_ADDR: address });
    expect(agents.code).toBe(1);
    expect(agents.output).toContain(`Nothing can listen on SVC_REALITY_LISTEN_ADDR ${address}: `);
    expect(agents.output).not.toContain('    at ');
  } finally {
    other.close();
  }
});

test('--print-config prints the effective settings and masks secrets', async () => {
  const { code, output } = await run({ SVC_MASTER_KEY: 'c2VjcmV0' }, ['--print-config']);
  expect(code).toBe(0);
  expect(output).toContain('SVC_HTTP_LISTEN_ADDR=0.0.0.0:8081');
  expect(output).toContain('SVC_MASTER_KEY=***');
  expect(output).not.toContain('c2VjcmV0');
});

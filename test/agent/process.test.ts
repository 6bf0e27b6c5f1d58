/** `npm run agent` as a process: exit codes, logs and signals. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { compiledRoot } from '../../scripts/stack/process.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { issuePsk, startControlServer, type ControlServer } from '../support/agent-control-server.js';
import { snapshot } from '../support/snapshots.js';
import { eventually } from '../support/eventually.js';

let child: ChildProcess | undefined;
let service: ControlServer | undefined;
afterEach(async () => {
  child?.kill('SIGKILL');
  await service?.stop();
  child = service = undefined;
});

const program = join(compiledRoot, 'src/agent/main.js');

interface Running {
  readonly output: () => string;
  readonly exit: Promise<number | null>;
}

function run(environment: Record<string, string>, ...args: string[]): Running {
  let output = '';
  const started = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env.PATH ?? '', ...environment },
  });
  child = started;
  for (const stream of [started.stdout, started.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  return { output: () => output, exit: new Promise((resolve) => started.once('exit', resolve)) };
}

describe('the agent process', () => {
  it('says how it is used and which it is, and refuses any other argument', async () => {
    const [help, version, other] = [run({}, '--help'), run({}, '--version'), run({}, '--port')];
    expect([await help.exit, await version.exit, await other.exit]).toEqual([0, 0, 2]);
    expect(help.output()).toContain('SVC_CONTROL_PSK_FILE');
    expect(version.output()).toMatch(/^reference-agent \d+\.\d+\.\d+\+\w+ \(compiler version \d+, format \d+\)\n$/);
    expect(other.output()).toMatch(/^gateway-agent: --port is not/);
  });

  it('exits with code 2 and names the wrong variables of its environment', async () => {
    const running = run({
      SVC_AGENT_ID: 'n',
      SVC_CONTROL_ENDPOINT: 'http://127.0.0.1:1',
      SVC_CONTROL_PSK: 'svcpsk1_secret',
    });
    expect(await running.exit).toBe(2);
    expect(running.output()).toContain('SVC_CONTROL_PSK');
    expect(running.output()).not.toContain('secret');
  });

  it('names the setting of the address on which its metrics cannot be served', async () => {
    const { port, controlPsk } = (service = await startControlServer({ onSaid: () => undefined }));
    const running = run({
      SVC_AGENT_ID: 'node-1',
      SVC_CONTROL_ENDPOINT: `http://127.0.0.1:${port}`,
      SVC_CONTROL_PSK: controlPsk,
      SVC_AGENT_METRICS_ADDR: `127.0.0.1:${port}`,
    });
    expect(await running.exit).toBe(1);
    expect(running.output()).toMatch(/SVC_AGENT_METRICS_ADDR: .*EADDRINUSE/);
  });

  it.each([
    [
      'in the journal',
      (dev: bigint, ino: bigint) => `${dev}:${ino}`,
      /^<6>\{"level":"info".*\n(<\d>.*\n)*<4>\{"level":"warn"/,
    ],
    [
      'in any other file',
      (dev: bigint, ino: bigint) => `${dev}:${ino + 1n}`,
      /^\{"level":"info".*\n(\{.*\n)*\{"level":"warn"/,
    ],
  ])('writes lines with a priority %s or without', async (_where, named, expected) => {
    const folder = await mkdtemp(join(tmpdir(), 'agent-log-'));
    const file = await open(join(folder, 'log'), 'w+');
    try {
      const { dev, ino } = await file.stat({ bigint: true });
      child = spawn(process.execPath, [program], {
        stdio: ['ignore', file.fd, 'inherit'],
        env: {
          PATH: process.env.PATH ?? '',
          JOURNAL_STREAM: named(dev, ino),
          SVC_AGENT_ID: 'node-1',
          SVC_CONTROL_ENDPOINT: 'http://127.0.0.1:1',
          SVC_CONTROL_PSK: issuePsk().controlPsk,
        },
      });
      const written = async (): Promise<string> => {
        const { buffer, bytesRead } = await file.read(Buffer.alloc(16_384), 0, 16_384, 0);
        return buffer.toString('utf8', 0, bytesRead);
      };
      await eventually(written).toMatch(expected);
    } finally {
      await file.close();
      await rm(folder, { recursive: true });
    }
  });

  it('survives the loss of the service, and at SIGTERM sends SessionClose NORMAL and exits with code 0, however often it comes', async () => {
    service = await startControlServer({
      onSaid(said, session) {
        if (said.$case === 'configRequest') session.push(snapshot(1));
        // As npm does, which hands on a Ctrl-C that the agent has got from the terminal already.
        if (said.$case === 'close') child?.kill('SIGTERM');
      },
    });
    const { port, controlPsk } = service;
    const running = run({
      SVC_AGENT_ID: 'node-1',
      SVC_CONTROL_ENDPOINT: `http://127.0.0.1:${port}`,
      SVC_CONTROL_PSK: controlPsk,
    });
    await eventually(running.output).toContain('configuration applied');
    const [session] = service.sessions;
    session?.drop();
    await eventually(running.output).toContain('connection lost');
    await eventually(() => service?.sessions.length).toBe(2);
    child?.kill('SIGTERM');
    expect(await running.exit).toBe(0);
    expect(service.sessions[1]?.said.at(-1)).toMatchObject({
      $case: 'close',
      value: { reason: SessionCloseReason.NORMAL },
    });
    expect(running.output()).not.toContain(controlPsk.slice(8, 40));
    for (const line of running.output().trim().split('\n'))
      expect(JSON.parse(line)).toMatchObject({ level: expect.any(String), node: 'node-1' });
  });
});

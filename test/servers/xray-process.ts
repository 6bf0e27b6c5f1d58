/** Stock Xray as a process, built from its Go module by `npm run test:servers`: configured as its users do, in JSON. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { projectRoot } from '../support/project-root.js';

export const xrayBinary = join(projectRoot, 'dist', 'test-servers', 'xray');

const startsWithinMs = 30_000;

/** Starts Xray with inbounds and outbounds, and waits until it listens. */
export async function startXray(config: object): Promise<{ close(): Promise<void> }> {
  const child = spawn(xrayBinary, ['run', '-config', 'stdin:'], { stdio: ['pipe', 'pipe', 'ignore'] });
  const exited = once(child, 'exit');
  child.stdin.end(JSON.stringify({ log: { loglevel: 'warning' }, ...config }));
  const close = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  const timer = setTimeout(() => child.kill('SIGKILL'), startsWithinMs);
  let said = '';
  for await (const line of createInterface({ input: child.stdout })) {
    said += `${line}\n`;
    if (/Xray \S+ started/.test(line)) {
      clearTimeout(timer);
      return { close };
    }
  }
  throw new Error(`Xray did not start: ${said}`);
}

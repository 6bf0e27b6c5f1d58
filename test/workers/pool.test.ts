/** Worker threads: bounded, and whatever happens to one fails its own job alone. */
import { afterEach, describe, expect, it } from 'vitest';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { silentLogger } from '../../src/kernel/logger.js';
import { entryBeside, WorkerLostError } from '../../src/workers/conversation.js';
import { createWorkerPool } from '../../src/workers/pool.js';
import type { WorkerPool, WorkerPoolOptions } from '../../src/workers/pool.js';
import { eventually } from '../support/eventually.js';
import { projectRoot } from '../support/project-root.js';

const built = pathToFileURL(join(projectRoot, 'dist/test-programs/test/workers/children/jobs.js'));
const pools: WorkerPool[] = [];
const open = (options: Partial<WorkerPoolOptions> = {}): WorkerPool => {
  const pool = createWorkerPool({ entry: built, logger: silentLogger, ...options });
  pools.push(pool);
  return pool;
};
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});

const echo = (pool: WorkerPool, text: string): Promise<unknown> =>
  pool.run('echo', async (job) => {
    job.send(text);
    return job.receive();
  });
const waitFor = (pool: WorkerPool, job: string): Promise<unknown> => pool.run(job, (one) => one.receive());
const unavailable = { code: 'unavailable', hints: { retryAfterSeconds: expect.any(Number) } };

describe('a pool', () => {
  it('starts a thread for the first job, and keeps it and its state for the next', async () => {
    const pool = open();
    expect(pool.stats().threads).toBe(0);
    expect(await echo(pool, 'one')).toEqual({ said: 'one', served: 1 });
    expect(await echo(pool, 'two')).toEqual({ said: 'two', served: 2 });
    expect(pool.stats()).toEqual({ threads: 1, busy: 0, lost: 0 });
  });

  it('passes messages on in order, both ways', async () => {
    const sent = Array.from({ length: 200 }, (_, index) => index);
    const heard = await open().run('echoAll', async (job) => {
      for (const message of sent) job.send(message);
      const all: unknown[] = [];
      for (const _ of sent) all.push(await job.receive());
      job.send('end');
      return all;
    });
    expect(heard).toEqual(sent);
  });

  it('runs no more jobs at a time than it has threads; the others wait', async () => {
    const pool = open({ threads: 2 });
    const answers = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((text) => echo(pool, text)));
    expect(answers).toMatchObject(['a', 'b', 'c', 'd', 'e'].map((said) => ({ said })));
    expect(pool.stats().threads).toBe(2);
  });

  it('turns callers away when the queue is full, and when they have waited too long', async () => {
    const pool = open({ waiting: 1, waitMs: 50 });
    const first = waitFor(pool, 'silent');
    const [waited, refused] = await Promise.allSettled([echo(pool, 'waits'), echo(pool, 'refused')]);
    expect(waited).toMatchObject({ status: 'rejected', reason: unavailable });
    expect(refused).toMatchObject({ status: 'rejected', reason: unavailable });
    await pool.close();
    await expect(first).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('ends a thread that has been without work for a while', async () => {
    const pool = open({ idleMs: 20 });
    await echo(pool, 'one');
    await eventually(async () => pool.stats().threads).toBe(0);
    expect(await echo(pool, 'two')).toEqual({ said: 'two', served: 1 });
  });

  it('gives a thread nothing of the environment, where secrets may be', async () => {
    expect(await waitFor(open(), 'environment')).toEqual([]);
  });
});

describe('a job', () => {
  it.each([
    ['fail', /it is broken/],
    ['crash', /out of the blue/],
    ['returns', /before it had answered/],
    ['nothing of this name', /no worker knows/],
  ])('that does this fails alone: %s', async (job, reason) => {
    const pool = open();
    const [failed, next] = await Promise.allSettled([waitFor(pool, job), echo(pool, 'next')]);
    expect(failed).toMatchObject({ status: 'rejected', reason: { message: expect.stringMatching(reason) } });
    expect(next).toEqual({ status: 'fulfilled', value: { said: 'next', served: 1 } });
  });

  it('whose thread crashes is told that the thread was lost', async () => {
    const pool = open();
    await expect(waitFor(pool, 'crash')).rejects.toBeInstanceOf(WorkerLostError);
    expect(pool.stats()).toEqual({ threads: 0, busy: 0, lost: 1 });
  });

  it('that takes too long is ended, even if it never gives way', async () => {
    const pool = open({ jobMs: 100 });
    await expect(waitFor(pool, 'busy')).rejects.toMatchObject(unavailable);
    expect(pool.stats().threads).toBe(0);
    await expect(waitFor(open(), 'returns')).rejects.toThrow();
  });

  it('whose caller fails leaves nothing of it to the next one', async () => {
    const pool = open();
    const failed = pool.run('echoAll', async (job) => {
      job.send('left behind');
      throw new Error('the caller failed');
    });
    await expect(failed).rejects.toThrow('the caller failed');
    expect(await echo(pool, 'next')).toEqual({ said: 'next', served: 1 });
  });
});

describe('closing', () => {
  it('fails what runs and what waits, and starts nothing after it', async () => {
    const pool = open();
    const both = [waitFor(pool, 'busy'), echo(pool, 'waits')];
    await eventually(async () => pool.stats().busy).toBe(1);
    const settled = Promise.allSettled(both);
    await pool.close();
    for (const one of await settled) expect(one).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } });
    await expect(echo(pool, 'late')).rejects.toMatchObject({ code: 'unavailable' });
    expect(pool.stats().threads).toBe(0);
  });
});

it('a thread can run a program that is not compiled yet, as in development', async () => {
  const pool = open({ entry: entryBeside(new URL('children/any.ts', import.meta.url).href, 'jobs') });
  expect(await echo(pool, 'typescript')).toEqual({ said: 'typescript', served: 1 });
});

/** The rules of docs/alerts.yml watch metrics that the running service has, and its documentation names each of them. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { prepareService } from '../../scripts/stack/service.js';

const read = (file: string): Promise<string> => readFile(new URL(`../../${file}`, import.meta.url), 'utf8');

test('every alert uses a metric that the service has and docs/operations.md explains', async () => {
  const { groups } = parse(await read('docs/alerts.yml')) as { groups: { rules: { expr: string }[] }[] };
  const watched = new Set(
    groups.flatMap(({ rules }) => rules.flatMap(({ expr }) => expr.match(/(svc|nodejs)_\w+/g) ?? [])),
  );
  expect(watched.size).toBeGreaterThan(10);

  const dataDir = await mkdtemp(join(tmpdir(), 'svc-alerts-'));
  const service = await prepareService({ dataDir });
  try {
    await service.start();
    const metrics = await (await fetch(`${service.url}/metrics`, { signal: AbortSignal.timeout(10_000) })).text();
    const offered = new Set(
      [...metrics.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name, type]) =>
        type === 'histogram' ? ['_bucket', '_sum', '_count'].map((part) => `${name}${part}`) : [name!],
      ),
    );
    expect([...watched].filter((name) => !offered.has(name))).toEqual([]);
  } finally {
    await service.stop();
    await rm(dataDir, { recursive: true });
  }
  const table = await read('docs/operations.md');
  const explained = (name: string): boolean => table.includes(`\`${name.replace(/_(bucket|sum|count)$/, '')}`);
  expect([...watched].filter((name) => !explained(name))).toEqual([]);
}, 90_000);

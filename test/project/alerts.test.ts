/** The rules of docs/alerts.yml watch metrics that the running service has, and each rule has a heading in the runbook. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { prepareService } from '../../scripts/stack/service.js';

const read = (file: string): Promise<string> => readFile(new URL(`../../${file}`, import.meta.url), 'utf8');

test('every alert uses a metric that the service has and docs/reference/metrics.md explains', async () => {
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
  const table = await read('docs/reference/metrics.md');
  const explained = (name: string): boolean => table.includes(`\`${name.replace(/_(bucket|sum|count)$/, '')}`);
  expect([...watched].filter((name) => !explained(name))).toEqual([]);
});

test('every alert has a heading in the runbook, and names it; the runbook has no other headings', async () => {
  const { groups } = parse(await read('docs/alerts.yml')) as {
    groups: { rules: { alert: string; annotations: { runbook: string } }[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  const headings = [...(await read('docs/how-to/alerts.md')).matchAll(/^## (\w+)$/gm)].map(([, heading]) => heading!);
  expect(headings.toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
  expect(rules.filter((r) => r.annotations.runbook !== `docs/how-to/alerts.md#${r.alert.toLowerCase()}`)).toEqual([]);
});

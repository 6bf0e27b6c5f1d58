/**
 * The rules of docs/alerts.yml and the panels of docs/grafana watch metrics that the running service has, by labels that
 * they have; each rule has a heading in the runbook.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { prepareService } from '../../scripts/stack/service.js';

const read = (file: string): Promise<string> => readFile(new URL(`../../${file}`, import.meta.url), 'utf8');

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const panelsOfDashboard = async (): Promise<readonly Panel[]> =>
  (JSON.parse(await read('docs/grafana/gateway-control.json')) as { panels: Panel[] }).panels;

const withoutPart = (metric: string): string => metric.replace(/_(bucket|sum|count)$/, '');

test('every alert and panel uses a metric that the service has and docs/reference/metrics.md explains', async () => {
  const { groups } = parse(await read('docs/alerts.yml')) as { groups: { rules: { expr: string }[] }[] };
  const alerts = groups.flatMap(({ rules }) => rules.map(({ expr }) => expr));
  const panels = (await panelsOfDashboard()).flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  const watchedBy = (all: readonly string[]): ReadonlySet<string> =>
    new Set(all.flatMap((expr) => expr.match(/\b(svc|nodejs|process)_\w+/g) ?? []));
  for (const part of [alerts, panels]) expect(watchedBy(part).size).toBeGreaterThan(10);
  const watched = watchedBy([...alerts, ...panels]);

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
  const explained = (name: string): boolean =>
    name.startsWith('process_') || table.includes(`\`${withoutPart(name)}\``);
  expect([...watched].filter((name) => !explained(name))).toEqual([]);
});

test('the dashboard asks for labels that its metrics have, in panels that say what they show and do not overlap', async () => {
  const table = await read('docs/reference/metrics.md');
  const labelsOf = (metric: string): readonly string[] => {
    const [, labels = ''] = new RegExp(`^\\| \`${withoutPart(metric)}\` \\| \\w+ \\| (.*?) \\|`, 'm').exec(table) ?? [];
    return [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label!);
  };
  const panels = await panelsOfDashboard();
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const taken = new Set<string>();
  for (const { title, type, description, gridPos, targets = [] } of panels) {
    if (type !== 'row') expect([title, description, targets.length > 0]).toEqual([title, expect.any(String), true]);
    for (const { expr, legendFormat } of targets) {
      const [metric = ''] = /\b(svc|nodejs|process)_\w+/.exec(expr) ?? [];
      const selected = [...expr.matchAll(/(\w+)(?:=|!=|=~|!~)"/g)].map(([, label]) => label!);
      const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, labels]) => labels!.split(/, */));
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!);
      const known = [...labelsOf(metric), 'instance', ...(metric.endsWith('_bucket') ? ['le'] : [])];
      expect({ title, unknown: [...selected, ...grouped, ...shown].filter((label) => !known.includes(label)) }).toEqual(
        {
          title,
          unknown: [],
        },
      );
      if (/\bby \(/.test(expr)) expect([title, shown.filter((label) => !grouped.includes(label))]).toEqual([title, []]);
    }
    const { x, y, w, h } = gridPos;
    expect([title, x + w <= 24]).toEqual([title, true]);
    for (let place = 0; place < w * h; place += 1) {
      const cell = `${x + (place % w)} ${y + Math.floor(place / w)}`;
      expect([title, taken.has(cell)]).toEqual([title, false]);
      taken.add(cell);
    }
  }
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

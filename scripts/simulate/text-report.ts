/** A simulation as text for a terminal: a table, sparklines over time, and a histogram. */
import { hasConverged, type Result, type Times } from './result.js';

const blocks = '▁▂▃▄▅▆▇█';
const plotWidth = 60;
const barWidth = 40;

const count = (value: number): string => value.toLocaleString('en-US');
/** `8.4 ms`, `1.2 s` */
export function milliseconds(ms: number): string {
  return ms >= 1_000 ? `${(ms / 1_000).toFixed(1)} s` : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

/**
 * One character per part of the series, from the lowest block for 0 to the highest for the largest value.
 * @internal exported for tests
 */
export function sparkline(values: readonly (number | null)[], width = plotWidth): string {
  const parts = partsOf(values, width);
  const top = Math.max(...parts.map((value) => value ?? 0), 0);
  return parts
    .map((value) => {
      if (value === null) return ' ';
      return blocks[top === 0 ? 0 : Math.min(blocks.length - 1, Math.floor((value / top) * blocks.length))] ?? ' ';
    })
    .join('');
}

/** The largest value in each of at most `width` parts of the series. */
function partsOf(values: readonly (number | null)[], width: number): readonly (number | null)[] {
  const parts = Math.min(width, values.length);
  return Array.from({ length: parts }, (_, part) => {
    const from = Math.floor((part * values.length) / parts);
    const to = Math.floor(((part + 1) * values.length) / parts);
    const known = values.slice(from, to).filter((value) => value !== null);
    return known.length === 0 ? null : Math.max(...known);
  });
}

/** A bar per bucket, in eighths of a character. @internal exported for tests */
export function histogram(buckets: Result['histogram'], width = barWidth): readonly string[] {
  const top = Math.max(...buckets.map((bucket) => bucket.count), 1);
  const first = buckets.findIndex((bucket) => bucket.count > 0);
  return buckets.slice(Math.max(0, first)).map((bucket) => {
    const eighths = Math.ceil((bucket.count / top) * width * 8);
    const rest = eighths % 8;
    const bar = '█'.repeat(Math.floor(eighths / 8)) + (rest === 0 ? '' : (' ▏▎▍▌▋▊▉'[rest] ?? ''));
    return `${`≤ ${milliseconds(bucket.upToMs)}`.padStart(10)} │${bar.padEnd(width)} ${count(bucket.count)}`;
  });
}

const times = (value: Times | null): string =>
  value === null
    ? '–'
    : `p50 ${milliseconds(value.p50)}, p99 ${milliseconds(value.p99)}, worst ${milliseconds(value.max)} (${count(value.count)})`;

const listed = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, value]) => `${name} ${count(value)}`)
    .join(', ') || 'none';

/** The rows of the table: label and value. */
export function rowsOf(result: Result): readonly (readonly [what: string, value: string])[] {
  const { scenario, counts, agents, edits } = result;
  const storms = result.storms.map(
    ({ atSecond, cut, backAfterSeconds }) =>
      [
        `storm at ${atSecond} s`,
        `${count(cut)} cut, ${backAfterSeconds === null ? 'not all came back' : `all back after ${backAfterSeconds} s`}`,
      ] as const,
  );
  const hops = result.hops.map(
    ({ kind, served, failed, bytes }) =>
      [
        `bytes over ${kind}`,
        `${(bytes / 2 ** 20).toFixed(1)} MiB there and back, ${count(served)} clients served, ${count(failed)} failed`,
      ] as const,
  );
  return [
    ['agents', `${count(scenario.agents)} in ${scenario.processes} processes`],
    ['all connected after', result.connectSeconds === null ? 'never' : `${result.connectSeconds} s`],
    ['refused', listed(counts.refusals)],
    ['connections lost, attempts failed', `${count(counts.losses)}, ${count(counts.failedDials)}`],
    ['sessions closed by the service', listed(counts.closes)],
    ['changes of one node, of all, failed', `${count(edits.one)}, ${count(edits.all)}, ${count(edits.failed)}`],
    ['change of one node until applied', times(result.applied.one)],
    ['change of all until applied', times(result.applied.all)],
    ['change of all until the last has it', times(result.lastApplied)],
    ['snapshots applied, rejected', `${count(counts.applies)}, ${count(counts.rejects)}`],
    ['agents that rejected, read slowly', `${count(agents.rejecting)}, ${count(agents.slow)}`],
    ['heartbeats sent, answered', `${count(counts.heartbeats)}, ${count(counts.answers)}`],
    ...storms,
    ...hops,
    [
      'processor time of service, agents',
      `${result.serviceCpuSeconds === null ? 'unknown' : `${result.serviceCpuSeconds} s`}, ${agents.cpuSeconds} s`,
    ],
    [
      'converged in the end',
      `${count(result.converged)} of ${count(scenario.agents)}${
        result.settleSeconds === null ? '' : ` after ${result.settleSeconds} s`
      }`,
    ],
  ];
}

export function textReport(result: Result): string {
  const rows = rowsOf(result);
  const width = Math.max(...rows.map(([what]) => what.length));
  const { seconds } = result;
  const plots = [
    ['connected', seconds.map(({ connected }) => connected), count],
    ['behind', seconds.map(({ behind }) => behind), count],
    ['applied per second', seconds.map(({ applies }) => applies), count],
    ['rejected per second', seconds.map(({ rejects }) => rejects), count],
    ['p99 until applied', seconds.map(({ p99 }) => p99), milliseconds],
    ['cores of the service', seconds.map(({ cores }) => cores), (value: number) => value.toFixed(2)],
  ] as const;
  return [
    ...rows.map(([what, value]) => `${what.padEnd(width)}  ${value}`),
    '',
    ...plots
      .filter(([, values]) => values.some((value) => value !== null && value > 0))
      .map(
        ([what, values, show]) =>
          `${what.padEnd(width)}  ${sparkline(values)}  up to ${show(Math.max(...values.map((value) => value ?? 0)))}`,
      ),
    '',
    ...(result.histogram.length === 0 ? [] : ['time until applied', ...histogram(result.histogram), '']),
    ...(hasConverged(result) ? [] : [`Not converged: ${result.notConverged.join(', ')}`, '']),
  ].join('\n');
}

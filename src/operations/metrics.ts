/**
 * The text of `/metrics`, from functions that the wiring passes and that are read when it is made. Counts nothing itself;
 * the numbers of the process (processor, memory, event loop) are those of prom-client.
 * Implements `docs/contract/rest.md#beside-api`.
 */
import { collectDefaultMetrics, Registry } from 'prom-client';
import type { Clock } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';
import type { Histogram, Tally } from '../kernel/tallies.js';

/** They are made from lists of everything that is open, agents too: at ten thousand a reading would hold up the event loop. */
const listsOfHandles = [
  'nodejs_active_handles',
  'nodejs_active_handles_total',
  'nodejs_active_requests',
  'nodejs_active_requests_total',
  'nodejs_active_resources',
  'nodejs_active_resources_total',
];

interface Described {
  /** In Prometheus form, `svc_…`, with its unit at the end; that of a counter ends in `_total`. */
  readonly name: string;
  readonly help: string;
}

/** A number, or one for each value of the label. */
export interface NumberSource extends Described {
  readonly type: 'gauge' | 'counter';
  /** Name of the label when `read` returns a map. */
  readonly label?: string;
  read(): number | ReadonlyMap<string, number>;
}

/** A counter with several labels. */
interface TallySource extends Described {
  readonly type: 'tally';
  readonly labels: readonly string[];
  readonly tally: Pick<Tally, 'all'>;
}

interface HistogramSource extends Described {
  readonly type: 'histogram';
  readonly labels: readonly string[];
  readonly histogram: Pick<Histogram, 'bounds' | 'all'>;
}

export type MetricSource = NumberSource | TallySource | HistogramSource;

export interface Metrics {
  /** The Prometheus text. */
  text(): Promise<string>;
  close(): void;
}

/** @param clock the text is made again after a second at the earliest, however many ask for it */
export function createMetrics(sources: readonly MetricSource[], clock: Pick<Clock, 'monotonic'>): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of listsOfHandles) registry.removeSingleMetric(name);
  const make = async (): Promise<string> => {
    const ofProcess = await registry.metrics();
    return `${sources.map(shown).join('')}${ofProcess}`;
  };
  let made: { readonly at: number; readonly text: Promise<string> } | undefined;
  return {
    text() {
      const now = clock.monotonic();
      if (made === undefined || now - made.at >= limits.rest.metricsEveryMs) made = { at: now, text: make() };
      return made.text;
    },
    close: () => registry.clear(),
  };
}

function shown(source: MetricSource): string {
  const { name, help, type } = source;
  const head = `# HELP ${name} ${help}\n# TYPE ${name} ${type === 'tally' ? 'counter' : type}\n`;
  return head + [...samples(source)].join('');
}

function* samples(source: MetricSource): Generator<string, void> {
  const { name } = source;
  switch (source.type) {
    case 'gauge':
    case 'counter': {
      const value = source.read();
      if (typeof value === 'number') yield sample(name, [], [], value);
      else for (const [word, count] of value) yield sample(name, [source.label ?? 'key'], [word], count);
      return;
    }
    case 'tally':
      for (const { words, value } of source.tally.all()) yield sample(name, source.labels, words, value);
      return;
    case 'histogram': {
      const { labels, histogram } = source;
      for (const { words, value } of histogram.all()) {
        let upTo = 0;
        for (const [place, count] of value.counts.entries()) {
          upTo += count;
          const bound = histogram.bounds[place];
          const le = bound === undefined ? '+Inf' : String(bound);
          yield sample(`${name}_bucket`, [...labels, 'le'], [...words, le], upTo);
        }
        yield sample(`${name}_sum`, labels, words, value.sum);
        yield sample(`${name}_count`, labels, words, upTo);
      }
      return;
    }
    default:
      source satisfies never;
  }
}

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' };

function sample(name: string, labels: readonly string[], words: readonly string[], value: number): string {
  if (labels.length === 0) return `${name} ${value}\n`;
  const pairs = labels.map((label, place) => {
    const word = (words[place] ?? '').replace(/[\\"\n]/g, (character) => escapes[character] ?? character);
    return `${label}="${word}"`;
  });
  return `${name}{${pairs.join(',')}} ${value}\n`;
}

/**
 * The text of `/metrics`, made with prom-client: the metrics of the parts, numbers read when the text is made, and
 * process metrics (CPU, memory, event loop). Counts nothing itself. Implements `docs/contract/rest.md#beside-api`.
 */
import { collectDefaultMetrics, Counter, Gauge, Registry, type Metric } from 'prom-client';
import type { Clock } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';

/** These list everything that is open: with ten thousand agents, one reading would block the event loop. */
const listsOfHandles = [
  'nodejs_active_handles',
  'nodejs_active_handles_total',
  'nodejs_active_requests',
  'nodejs_active_requests_total',
  'nodejs_active_resources',
  'nodejs_active_resources_total',
];

/** A number read when the text is made, or one number per label value. */
export interface NumberSource {
  readonly type: 'gauge' | 'counter';
  /** In Prometheus form, `svc_…`, with its unit at the end; a counter's name ends in `_total`. */
  readonly name: string;
  readonly help: string;
  /** Name of the label when `read` returns a map. */
  readonly label?: string | undefined;
  /** Undefined for a number without a label that is not to be shown. */
  read(): number | undefined | ReadonlyMap<string, number>;
}

type Read = NumberSource['read'];

/** @param label its name when `read` returns a map */
export const gauge = (name: string, help: string, read: Read, label?: string): NumberSource => ({
  type: 'gauge',
  name,
  help,
  label,
  read,
});

/** As `gauge`. */
export const counter = (name: string, help: string, read: Read, label?: string): NumberSource => ({
  ...gauge(name, help, read, label),
  type: 'counter',
});

/** A number to read, or a prom-client metric created with `registers: []`. */
export type MetricSource = NumberSource | Metric;

export interface Metrics {
  /** The Prometheus text. */
  text(): Promise<string>;
  close(): void;
}

/** @param clock limits how often the text is made: at most once a second, however many ask for it */
export function createMetrics(sources: readonly MetricSource[], clock: Pick<Clock, 'monotonic'>): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of listsOfHandles) registry.removeSingleMetric(name);
  for (const source of sources) registry.registerMetric('read' in source ? readWhenShown(source) : source);
  let made: { readonly at: number; readonly text: Promise<string> } | undefined;
  return {
    text() {
      const now = clock.monotonic();
      if (made === undefined || now - made.at >= limits.rest.metricsEveryMs)
        made = { at: now, text: registry.metrics() };
      return made.text;
    },
    close: () => registry.clear(),
  };
}

function readWhenShown({ type, name, help, label, read }: NumberSource): Metric {
  const options = { name, help, labelNames: label === undefined ? [] : [label], registers: [] };
  const show = (set: (labels: Readonly<Record<string, string>>, value: number) => void): void => {
    const value = read();
    if (typeof value === 'number') set({}, value);
    else for (const [word, each] of value ?? []) set({ [label ?? 'key']: word }, each);
  };
  switch (type) {
    case 'gauge':
      return new Gauge({
        ...options,
        collect() {
          this.reset();
          // `reset` has set a number without a label to 0.
          if (label === undefined) this.remove();
          show((labels, value) => this.set(labels, value));
        },
      });
    case 'counter':
      return new Counter({
        ...options,
        collect() {
          this.reset();
          show((labels, value) => this.inc(labels, value));
        },
      });
    default:
      return type satisfies never;
  }
}

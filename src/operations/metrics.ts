/** The text of `/metrics`, from functions that the wiring passes and that are read at each request. Counts nothing. */
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';

export interface MetricSource {
  /** In Prometheus form, `svc_…`. */
  readonly name: string;
  readonly help: string;
  /** One value, or one per label value. */
  read(): number | ReadonlyMap<string, number>;
  /** Name of the label when `read` returns a map. */
  readonly label?: string;
}

export interface Metrics {
  /** The Prometheus text. */
  text(): Promise<string>;
  close(): void;
}

export function createMetrics(sources: readonly MetricSource[]): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const { name, help, read, label } of sources) {
    new Gauge({
      name,
      help,
      labelNames: label === undefined ? [] : [label],
      registers: [registry],
      collect() {
        const value = read();
        if (typeof value === 'number') return this.set(value);
        this.reset();
        for (const [key, count] of value) this.set({ [label ?? 'key']: key }, count);
      },
    });
  }
  return { text: () => registry.metrics(), close: () => registry.clear() };
}

/**
 * Measures an event store's appends from outside: how long the store took to answer, and how many events were written.
 * Also tracks the newest position that this instance has written. Changes no answer.
 */
import { Counter, Histogram } from 'prom-client';
import type { Clock } from '../kernel/clock.js';
import { expires, streams } from '../kernel/event.js';
import { secondsBounds } from '../kernel/seconds-bounds.js';
import type { EventStore } from '../storage/event-store.js';
import type { MetricSource } from './metrics.js';

interface MeasuredAppends {
  /** The same store, with measured appends. */
  readonly eventStore: EventStore;
  /** Position of the newest event appended here, if the store has reported it; 0 before the first. */
  newestPosition(): number;
  metrics(): readonly MetricSource[];
}

export function measureAppends(eventStore: EventStore, clock: Clock): MeasuredAppends {
  const seconds = new Histogram({
    name: 'svc_append_seconds',
    help: 'Time until the event store answered an append, by target and outcome.',
    labelNames: ['log', 'outcome'],
    buckets: secondsBounds,
    registers: [],
  });
  const written = new Counter({
    name: 'svc_append_events_total',
    help: 'Events appended to the log.',
    labelNames: ['log'],
    registers: [],
  });
  let newest = 0;
  return {
    eventStore: {
      ...eventStore,
      async append(stream, expected, events) {
        const began = clock.monotonic();
        const outcome = await eventStore.append(stream, expected, events);
        const log = groupOf(stream);
        seconds.observe({ log, outcome: outcome.kind }, (clock.monotonic() - began) / 1000);
        if (outcome.kind === 'appended') {
          written.inc({ log }, events.length);
          newest = Math.max(newest, outcome.position ?? 0);
        }
        return outcome;
      },
    },
    newestPosition: () => newest,
    metrics: () => [seconds, written],
  };
}

/** The label of a stream: facts of agents and sign-ins have many streams. */
function groupOf(stream: string): string {
  switch (stream) {
    case streams.fleet:
      return 'fleet';
    case streams.accounts:
      return 'accounts';
    case streams.keyring:
      return 'service';
    default:
      return expires(stream) ? 'facts' : 'service';
  }
}

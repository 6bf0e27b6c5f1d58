/** Metrics of commands: the outcome of each, and how long it took. Wraps a gateway and changes no answer. */
import { Counter, Histogram } from 'prom-client';
import type { Gateway } from '../commands/port.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import { secondsBounds } from '../kernel/seconds-bounds.js';
import type { MetricSource } from '../instance/metrics.js';

interface CommandMetrics {
  /** The same gateway, with its commands counted. */
  counted<State, Command extends { readonly type: string }>(gateway: Gateway<State, Command>): Gateway<State, Command>;
  metrics(): readonly MetricSource[];
}

/** The type of a command; for a command with a rollout, that of the command itself. */
function typeOf(command: { readonly type: string; readonly command?: unknown }): string {
  const { command: inner } = command;
  return typeof inner === 'object' && inner !== null ? String(Reflect.get(inner, 'type')) : command.type;
}

export function createCommandMetrics(clock: Clock): CommandMetrics {
  const outcomes = new Counter({
    name: 'svc_commands_total',
    help: 'Commands by type and outcome: written, unchanged, repeated, or the code of the refusal.',
    labelNames: ['command', 'outcome'],
    registers: [],
  });
  const seconds = new Histogram({
    name: 'svc_command_seconds',
    help: 'Time from a command to its answer: decision, append and fold.',
    buckets: secondsBounds,
    registers: [],
  });
  return {
    counted: (gateway) => ({
      ...gateway,
      async execute(command, context, select) {
        const began = clock.monotonic();
        const settle = (outcome: string): void => {
          outcomes.inc({ command: typeOf(command), outcome });
          seconds.observe((clock.monotonic() - began) / 1000);
        };
        try {
          const outcome = await gateway.execute(command, context, select);
          if (outcome.kind === 'repeated') settle('repeated');
          else if (outcome.events.length === 0) settle('unchanged');
          else settle('written');
          return outcome;
        } catch (error) {
          settle(error instanceof ServiceError ? error.code : 'internal');
          throw error;
        }
      },
    }),
    metrics: () => [outcomes, seconds],
  };
}

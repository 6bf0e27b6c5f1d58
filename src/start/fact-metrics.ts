/** The fact recorder in `/metrics`. `docs/how-to/monitor.md` says what the numbers mean. */
import type { FactRecorder } from '../commands/port.js';
import type { NumberSource } from '../instance/metrics.js';

export function factMetrics(facts: Pick<FactRecorder, 'stats'>): readonly NumberSource[] {
  return [
    {
      type: 'counter',
      name: 'svc_facts_total',
      help: 'Facts of agents and sign-ins, by what became of them.',
      label: 'outcome',
      read: () => facts.stats().outcomes,
    },
    {
      type: 'gauge',
      name: 'svc_facts_held',
      help: 'Facts held back because their node has used up what it may write into the log.',
      read: () => facts.stats().held,
    },
  ];
}

/** What holds the log, in `/metrics`; the agent transport adds its own numbers. See `followers.ts`. */
import type { DeliveryService } from '../delivery/delivery.js';
import type { CommittedFleet } from '../projections/fleet/committed-fleet.js';
import type { Projections } from '../projections/port.js';
import type { LogChain } from '../security/log-chain/log-chain.js';
import type { NumberSource } from '../instance/metrics.js';

export function followerMetrics(
  committed: Pick<CommittedFleet, 'fleet' | 'state'>,
  delivery: Pick<DeliveryService, 'stats'>,
  projections: Pick<Projections, 'status'>,
  logChain: Pick<LogChain, 'broken'>,
): readonly NumberSource[] {
  return [
    {
      type: 'gauge',
      name: 'svc_log_broken',
      help: '1 when this instance met a command that breaks the log chain, or a log that is otherwise damaged.',
      read: () => (logChain.broken() !== undefined || committed.state().kind === 'broken_log' ? 1 : 0),
    },
    {
      type: 'gauge',
      name: 'svc_projection_position',
      help: 'Log position that every read model holds.',
      read: () => projections.status().position,
    },
    {
      type: 'gauge',
      name: 'svc_projection_parked',
      help: 'Entities taken out of a read model because an event could not be applied.',
      read: () => projections.status().parked.length,
    },
    {
      type: 'gauge',
      name: 'svc_delivery_revision',
      help: 'Revision of svc-fleet that configurations are compiled from.',
      read: () => committed.fleet().revision.value,
    },
    {
      type: 'gauge',
      name: 'svc_delivery_rejecting_nodes',
      help: 'Nodes with a session here that rejected their newest configuration and run an older one.',
      read: () => delivery.stats().rejectingNodes,
    },
    {
      type: 'gauge',
      name: 'svc_delivery_waiting_nodes',
      help: 'Changed nodes with a session that were not offered their newest snapshot yet.',
      read: () => delivery.stats().waitingNodes,
    },
    {
      type: 'counter',
      name: 'svc_delivery_offered_total',
      help: 'Snapshots offered to sessions.',
      read: () => delivery.stats().offered,
    },
    {
      type: 'counter',
      name: 'svc_delivery_reports_total',
      help: 'Apply reports of agents; ignored: on neither the newest nor the last-good snapshot, or of a superseded session.',
      label: 'outcome',
      read: () => delivery.stats().reports,
    },
  ];
}

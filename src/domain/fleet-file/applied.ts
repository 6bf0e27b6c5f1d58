/**
 * The steps of an apply as its plan shows them, and its deployments, read from its events.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, apply.
 */
import { lastEvent, type RecordedCommand, type RecordedEvent } from '../../kernel/event.js';
import { auditOfFleetEvent, fleetSubject } from '../audit/describe.js';
import { deploymentId } from '../chain/chain.js';
import { fleetEvent } from '../fleet/resources.js';
import type { AuditChange } from '../resource/audit-change.js';
import type { StepAction } from './compare.js';

export interface AppliedStep {
  readonly action: StepAction;
  /** `name` is null when the event has none. */
  readonly resource: { readonly type: string; readonly id: string; readonly name: string | null };
  readonly changes: readonly AuditChange[];
}

/** The steps of a command in order, each made on demand. */
export function stepsOf({ events }: RecordedCommand): readonly (() => AppliedStep)[] {
  return events.flatMap((event) => {
    const action = actionOf(event);
    if (action === undefined) return [];
    return () => {
      const { type, id, name } = fleetSubject(event);
      return { action, resource: { type, id: id ?? '', name }, changes: auditOfFleetEvent(event).changes };
    };
  });
}

function actionOf(event: RecordedEvent): StepAction | undefined {
  const { verb, changes } = auditOfFleetEvent(event);
  switch (verb) {
    case 'create':
    case 'delete':
    case 'deploy':
      return verb;
    case 'update': {
      const paths = changes.map(({ path }) => path);
      if (paths.every((path) => path === 'managed_by')) return 'adopt';
      return paths.includes('name') ? 'rename' : 'update';
    }
    // The apply itself, or the PSK of a new node.
    default:
      return undefined;
  }
}

export interface Deployment {
  readonly id: string;
  readonly chain_id: string;
  readonly chain_version: number;
  readonly at: string;
  readonly nodes: readonly { readonly node_id: string; readonly generation: number }[];
}

/** The deployments of a command. */
export function deploymentsOf(command: RecordedCommand): readonly Deployment[] {
  const { revision } = lastEvent(command);
  return command.events.flatMap((recorded): readonly Deployment[] => {
    const event = fleetEvent(recorded);
    if (event.type !== 'ChainDeployed' || event.data.definition.to === null) return [];
    const { chain_id, chain_version, nodes } = event.data;
    return [
      {
        id: deploymentId(recorded),
        chain_id,
        chain_version,
        at: recorded.metadata.occurred_at,
        nodes: nodes.map(({ node_id, offset }) => ({ node_id, generation: 1 + revision + offset })),
      },
    ];
  });
}

/** A matter as one sentence: what is wrong, with what, and why. Implements `docs/contract/rest.md#dashboard`, `matters`. */
import { unreachable } from '../../kernel/errors.js';
import type { Cause } from '../chain/health.js';
import type { LateBackup, MatterKind } from './kinds.js';

interface SentenceParts {
  readonly kind: Exclude<MatterKind, 'backup_late'>;
  readonly cause: Cause | null;
  readonly count: number;
  /** The name and the reason of the first resource. */
  readonly first: string;
  readonly reason: string;
  /** How many resources caused it together; 0 for one cause, or none. */
  readonly others: number;
}

/** A sentence without its full stop. */
export function sentenceOf({ kind, cause, count, first, reason, others }: SentenceParts): string {
  const chains = count === 1 ? `Chain "${first}"` : `${count} chains`;
  const be = count === 1 ? 'is' : 'are';
  const one = count === 1;
  switch (kind) {
    case 'chain_down':
    case 'chain_degraded':
      return `${chains} ${be} ${kind === 'chain_down' ? 'down' : 'degraded'}${because(cause, others)}`;
    case 'chain_unknown':
      return one ? `Nobody knows whether chain "${first}" works: ${reason}` : `Nobody knows whether ${chains} work`;
    case 'certificate_ended':
      return one ? `Certificate "${first}" has ended and is in use` : `${count} certificates have ended and are in use`;
    case 'certificate_ending':
      return one ? `Certificate "${first}" ends within 30 days` : `${count} certificates end within 30 days`;
    case 'node_offline':
      return one ? `Node "${first}" is offline` : `${count} nodes are offline`;
    case 'node_rejected':
      return `${one ? `Node "${first}" has` : `${count} nodes have`} rejected the newest configuration`;
    case 'listener_missing':
      return one ? `Node "${first}": ${reason}` : `${count} nodes do not run all that is deployed on them`;
    case 'agent_cannot_run':
      return one
        ? `Node "${first}": ${reason}`
        : `${count} nodes have agents that cannot run all that is deployed on them`;
    case 'unexpected_listener':
      return one ? `Node "${first}": ${reason}` : `${count} nodes run listeners that are not deployed`;
    case 'upstream_unhealthy':
      return one ? `Upstream "${first}" is unhealthy` : `${count} upstreams are unhealthy`;
    case 'rollout_halted':
      return one ? `The rollout of "${first}" is halted: ${reason}` : `${count} rollouts are halted`;
    case 'webhook_stopped':
      return one ? `Webhook "${first}" has stopped` : `${count} webhooks have stopped`;
    case 'chain_modified':
      return `${chains} ${one ? 'was' : 'were'} edited and not deployed since`;
    default:
      return unreachable(kind);
  }
}

/** A sentence without its full stop. */
export function lateBackupSentence({ ageMs, reason }: LateBackup): string {
  const hours = Math.floor((ageMs ?? 0) / 3_600_000);
  const age = hours < 48 ? `${hours} hours` : `${Math.floor(hours / 24)} days`;
  const what = ageMs === null ? 'There is no recent backup' : `The newest backup is ${age} old`;
  return reason === null ? what : `${what}: ${reason}`;
}

/** A cause as a clause: of one resource, and of several others together. */
const clauses: {
  readonly [K in Cause['kind']]: readonly [one: (name: string, detail: string) => string, several: string];
} = {
  node_offline: [(name) => `node ${name} is offline`, 'nodes are offline'],
  node_rejected: [
    (name) => `node ${name} has rejected its newest configuration`,
    'nodes have rejected their newest configuration',
  ],
  listener_missing: [(name, detail) => `listener ${detail} of node ${name} does not run`, 'listeners do not run'],
  target_unusable: [
    (name, detail) => `node ${name} cannot use the REALITY target of ${detail}`,
    'REALITY targets cannot be used',
  ],
  upstream_unhealthy: [(name) => `upstream ${name} is unhealthy`, 'upstreams are unhealthy'],
  upstream_disabled: [(name) => `upstream ${name} is disabled`, 'upstreams are disabled'],
  link_loss: [(name, detail) => `the link from ${name} to "${detail}" loses too much`, 'links lose too much'],
  apply_behind: [
    (name) => `node ${name} has not applied its newest configuration yet`,
    'nodes have not applied their newest configuration yet',
  ],
};

function because(cause: Cause | null, others: number): string {
  if (cause === null) return '';
  const [one, several] = clauses[cause.kind];
  if (others > 1) return ` because ${others} more ${several}`;
  return ` because ${one(`"${cause.resource.name}"`, cause.detail ?? '')}`;
}

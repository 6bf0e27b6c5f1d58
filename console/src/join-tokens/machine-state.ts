/** How far a joined machine is, and whether a token lets more machines in. Pure. */
import type { Schemas } from '../shared/api/client.js';
import type { states } from '../shared/ui/states.js';

type Node = Schemas['Node'];

export type Machine =
  'deleted' | { readonly status: Node['status']; readonly apply: { readonly state: Node['apply']['state'] } };

export function machineState(machine: Machine): keyof typeof states.machine {
  if (machine === 'deleted') return 'deleted';
  const { status, apply } = machine;
  if (status !== 'online') return status === 'pending' ? 'joined' : 'offline';
  switch (apply.state) {
    case 'none':
      return 'connected';
    case 'pushed':
      return 'applying';
    case 'applied':
    case 'rejected':
      return apply.state;
    default:
      return apply.state satisfies never;
  }
}

/** Whether it still lets a machine in. */
export function tokenState({
  used,
  uses,
  expired,
}: Pick<Schemas['JoinToken'], 'used' | 'uses' | 'expired'>): keyof typeof states.joinToken {
  if (used >= uses) return 'used up';
  return expired ? 'expired' : 'open';
}

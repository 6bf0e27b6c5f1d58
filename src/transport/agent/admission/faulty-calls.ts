/**
 * Calls that make no sense to this service: what does not parse, another `protocol_version`, an unknown method or
 * content type, a Control stream without a session. Each is a failure of its address, and the fifth on a connection
 * ends it, so that nobody can have the service read and answer them without end. A call's handlers decide what makes it
 * faulty. Implements `docs/contract/agent-protocol.md#opensession` ("Calls that do not parse").
 */
import { limits } from '../../../kernel/limits.js';
import type { SampledLog } from '../../../kernel/sampled-log.js';
import type { AgentConnection } from '../../listener/connection.js';
import type { AddressBudget } from './budgets.js';

interface FaultyCalls {
  /**
   * A faulty call is over.
   * @param verdict unknown: its handler did not see it, so it is noted here
   * @returns whether its connection is to be ended
   */
  note(connection: AgentConnection, verdict: 'faulty' | 'unknown'): boolean;
}

export function createFaultyCalls(
  addresses: Pick<AddressBudget, 'take'>,
  refusals: Pick<SampledLog, 'note'>,
): FaultyCalls {
  const counts = new WeakMap<AgentConnection, number>();
  return {
    note(connection, verdict) {
      const address = connection.remoteAddress;
      // Nothing waits: a call that is over can only be charged, and an address over its budget no further.
      addresses.take(address);
      if (verdict === 'unknown') {
        refusals.note({ reason: 'call_unknown', address }, 'a call was not one that this service can read');
      }
      const count = (counts.get(connection) ?? 0) + 1;
      counts.set(connection, count);
      // Those that were open beside the fifth are counted after it.
      if (count !== limits.agent.faultyCallsPerConnection || connection.closed) return false;
      refusals.note({ reason: 'connection_faulty_calls', address }, 'a connection was ended for its faulty calls');
      return true;
    },
  };
}

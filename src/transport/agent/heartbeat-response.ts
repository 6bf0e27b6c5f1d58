/** The answer to a heartbeat: its sequence, the intervals in force, and the commands claimed for it. Pure. */
import { Command } from '../../gen/svc/control/v1/command.js';
import type { HeartbeatRequest } from '../../gen/svc/control/v1/heartbeat.js';
import type { ServicePayload } from '../../gen/svc/control/v1/session.js';
import { limits } from '../../kernel/limits.js';
import type { AgentCommandName } from '../../delivery/port.js';
import type { Told } from './agent-intervals.js';

const commandValues: { readonly [name in AgentCommandName]: Command } = {
  RELOAD_CONFIG: Command.RELOAD_CONFIG,
  RESTART_PINGORA: Command.RESTART_PINGORA,
  RUN_DIAGNOSTICS: Command.RUN_DIAGNOSTICS,
};

export function heartbeatResponse(
  heartbeat: Pick<HeartbeatRequest, 'sequence'>,
  commands: readonly AgentCommandName[],
  told: Told,
): ServicePayload['payload'] {
  return {
    $case: 'heartbeatResponse',
    value: {
      ok: true,
      ackSequence: heartbeat.sequence,
      commands: commands.slice(0, limits.agent.commandsPerHeartbeat).map((name) => commandValues[name]),
      heartbeatIntervalSecs: told.heartbeatSecs,
      metricsIntervalSecs: told.metricsSecs,
    },
  };
}

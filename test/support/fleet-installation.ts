/**
 * A fleet with its log, a gateway and the handlers of reverts, all in memory: commands are decided, checked and folded as by
 * the real gateway, without a store, a queue or a log chain. For tests of handlers.
 */
import { runSync } from '../../src/kernel/pieces.js';
import { fleetAggregate } from '../../src/commands/aggregate.js';
import type { CommandContext, Gateway } from '../../src/commands/port.js';
import { createRevertHandlers, type AuditTrail } from '../../src/commands/revert.js';
import { describeCommand, isAboutSeveral } from '../../src/domain/audit/describe.js';
import { resourceOf, type FleetCommand, type FleetEvent } from '../../src/domain/fleet/resources.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import type { Revert } from '../../src/domain/revert/decide.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { lastEvent, type RecordedCommand } from '../../src/kernel/event.js';
import { recorded } from './fleet.js';

/** @param hooks `read` is called with the number of reads of the audit so far, before each; `holds`: the audit is not behind */
export function fleetInstallation(hooks: { read?(count: number): void; holds?(): boolean } = {}) {
  const fleet = emptyFleet();
  const aggregate = fleetAggregate;
  const log: RecordedCommand[] = [];
  const write = (
    events: readonly FleetEvent[],
    context: Pick<CommandContext, 'actor' | 'revertOf'>,
  ): RecordedCommand => {
    const command = recorded(fleet, events, context);
    const { refusal } = runSync(aggregate.apply(fleet, command));
    if (refusal !== undefined) throw new ServiceError(refusal.code, refusal.message);
    log.push(command);
    return command;
  };
  const gateway: Gateway<Fleet, FleetCommand | Revert> = {
    async execute(command, context, select) {
      const decision = runSync(aggregate.decide(fleet, command));
      if (!decision.ok) throw new ServiceError(decision.error.code, decision.error.message);
      const { events } = write(decision.value as readonly FleetEvent[], context);
      const [{ position, metadata }] = events;
      const commandId = metadata.command.id;
      return { kind: 'done', commandId, events, position, result: select(fleet) };
    },
    read: async (select) => select(fleet),
    alone: (work) => work(),
    async *commandsFrom(revision) {
      yield* log.filter(({ events: [first] }) => first.revision >= revision);
    },
    close: async () => undefined,
  };
  let reads = 0;
  const audit: AuditTrail = {
    command: async (id) => log.find(({ events: [first] }) => first.metadata.command.id === id),
    async *about(type, id, behind) {
      reads += 1;
      hooks.read?.(reads);
      for (const command of log.toReversed()) {
        const [{ metadata }] = command.events;
        const { position } = lastEvent(command);
        const subjects = command.events.map(resourceOf);
        if (position <= behind || !subjects.some((subject) => subject.type === type && subject.id === id)) continue;
        const several = isAboutSeveral(command.events[0]);
        const action = describeCommand(command)?.action ?? '';
        const { occurred_at: at, actor } = metadata;
        yield {
          id: metadata.command.id,
          action,
          actor: actor.type,
          at,
          position,
          events: command.events.length,
          isAboutSeveral: several,
        };
      }
    },
  };
  const asked: unknown[][] = [];
  const handlers = createRevertHandlers({
    plan: async () => undefined,
    gateway,
    fleet: () => fleet,
    projections: {
      async reached(...args) {
        asked.push(args);
        return hooks.holds?.() ?? true;
      },
    },
    audit,
  });
  return { fleet, log, write, gateway, handlers, asked };
}

/**
 * A gateway that can be handed to others before it exists: the fleet's gateway starts from delivery's fold, and delivery
 * runs commands through the gateway. Until it is provided, every command is refused.
 */
import type { Gateway } from '../commands/port.js';
import { ServiceError } from '../kernel/errors.js';

export interface LateGateway<State, Command> extends Gateway<State, Command> {
  provide(gateway: Gateway<State, Command>): void;
}

export function createLateGateway<State, Command>(): LateGateway<State, Command> {
  let gateway: Gateway<State, Command> | undefined;
  const provided = (): Gateway<State, Command> => {
    if (gateway === undefined) throw new ServiceError('unavailable', 'the service is starting; nothing was written');
    return gateway;
  };
  return {
    provide(started) {
      gateway = started;
    },
    execute: async (command, context, select) => provided().execute(command, context, select),
    read: async (select) => provided().read(select),
    async close() {
      await gateway?.close();
    },
  };
}

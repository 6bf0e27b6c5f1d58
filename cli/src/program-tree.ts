/** Walks commands. */
import type { Command } from 'commander';

/** All commands below one. */
export function* everyCommand(command: Command): Generator<Command> {
  for (const one of command.commands) {
    yield one;
    yield* everyCommand(one);
  }
}

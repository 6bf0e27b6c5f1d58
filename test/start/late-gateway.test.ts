/** A gateway that is handed out before it exists. */
import { expect, it } from 'vitest';
import type { Gateway } from '../../src/commands/port.js';
import { systemContext } from '../../src/commands/system.js';
import { createLateGateway } from '../../src/start/late-gateway.js';

const run = (gateway: Gateway<number, string>) =>
  gateway.execute('command', systemContext('test'), (state) => state + 1);

it('refuses every command as unavailable until it is provided, then passes them on', async () => {
  const late = createLateGateway<number, string>();
  await expect(run(late)).rejects.toMatchObject({ code: 'unavailable' });
  await late.close();
  const calls: string[] = [];
  late.provide({
    async execute(command, context, select) {
      calls.push(`${command} by ${context.actor.id}`);
      return { kind: 'done', commandId: 'c', events: [], position: 1, result: select(41), lagging: false, waitedMs: 0 };
    },
    read: async (select) => select(6),
    close: async () => void calls.push('close'),
  });
  expect(await run(late)).toMatchObject({ kind: 'done', result: 42 });
  expect(await late.read((state) => state + 1)).toBe(7);
  await late.close();
  expect(calls).toEqual(['command by service', 'close']);
});

/** Agents that the kit starts and stops, whatever they leave behind. */
import { expect, it } from 'vitest';
import { agentCommand } from '../../scripts/agent-check/agent-process.js';

it('stops waiting for an agent whose child has left its group and holds its output', async () => {
  let output = '';
  const agent = agentCommand(`setsid sh -c 'echo $$; exec sleep 60' & exec sleep 60`)({}, (text) => (output += text));
  await agent.start();
  await expect.poll(() => Number(output)).toBeGreaterThan(0);
  const began = performance.now();
  expect(await agent.stop()).toBe(false);
  expect(performance.now() - began).toBeLessThan(30_000);
  process.kill(Number(output));
});

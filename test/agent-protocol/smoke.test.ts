import { afterEach, expect, test } from 'vitest';
import { startAgentHouse } from '../support/agent-house.js';
import { createRawAgent, heartbeatOf, configRequestOf } from '../support/raw-agent.js';
import { eventually } from '../support/eventually.js';

let close: (() => Promise<void>) | undefined;
afterEach(async () => close?.());

test('smoke', async () => {
  const house = await startAgentHouse();
  close = house.close;
  const agent = createRawAgent(house, 'node-1', await house.issue('node-1'));
  const stream = await agent.connect();
  stream.say(heartbeatOf(1));
  stream.say(configRequestOf(0n));
  await eventually(() => stream.heard.length).toBe(2);
  console.log(stream.heard, house.transport.stats());
  house.revoke('node-1');
  console.log(await stream.status, stream.closeHeard());
  agent.disconnect();
});

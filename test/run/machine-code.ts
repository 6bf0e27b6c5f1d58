/**
 * Lets the service and an agent run once after they are compiled, so that every process that tests start finds their
 * machine code (`launch.ts`).
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually } from '../../scripts/stack/process.js';
import { prepareService } from '../../scripts/stack/service.js';
import { recordVariable } from './launch.js';

interface NodeAnswer {
  readonly id: string;
  readonly status: string;
  readonly control_psk: string;
}

/** Leaves the machine code beside the programs in `dist/test-programs`; none when they do not run, which tests tell better. */
export async function recordMachineCode(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'machine-code-'));
  try {
    await runBoth(dataDir);
  } catch (error) {
    process.stderr.write(`programs of the tests start without machine code: ${String(error)}\n`);
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function runBoth(dataDir: string): Promise<void> {
  const env = { [recordVariable]: 'yes' };
  const service = await prepareService({ dataDir, env });
  try {
    await service.start();
    const admin = await service.admin();
    const name = 'first';
    const node = await admin.call<NodeAnswer>('POST', '/api/nodes', { name, address: '127.0.0.1' });
    const { controlEndpoint } = service;
    const agent = startAgentProcess({ nodeId: node.id, controlEndpoint, controlPsk: node.control_psk, env });
    try {
      await eventually('the agent is online', async () => {
        const { status } = await admin.call<NodeAnswer>('GET', `/api/nodes/${node.id}`);
        return status === 'online' ? true : undefined;
      });
    } finally {
      await agent.stop();
    }
  } finally {
    await service.stop();
  }
}

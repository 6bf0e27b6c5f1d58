/** The agent's program, one file, as machines download it, and its sum. `machine-routes.ts` serves it. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { findBuilt, readOnce } from '../../../kernel/files.js';

export interface AgentProgram {
  readonly bytes: Buffer;
  /** Hexadecimal. */
  readonly sha256: string;
}

/** @returns gives the program; undefined where it was not built */
export function openAgentProgram(
  find: () => string | undefined = () => findBuilt('agent/gateway-agent.cjs', import.meta.url),
): () => Promise<AgentProgram | undefined> {
  return readOnce(find, readProgram);
}

async function readProgram(path: string): Promise<AgentProgram> {
  const bytes = await readFile(path);
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}
